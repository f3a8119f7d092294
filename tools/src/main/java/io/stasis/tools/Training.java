package io.stasis.tools;

import io.stasis.client.Json;
import io.stasis.client.StateDirectory;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Runs through the code that short commands use, in a JVM that records an ahead-of-time cache (JEP 514). It changes
 * nothing outside a temporary directory.
 */
final class Training {
    private static final List<String> ANSWERS = List.of(
            "{\"hello\":{\"version\":\"0.1.0\",\"protocol\":1,\"format\":1,\"pid\":1,\"host\":\"h\"}}",
            "{\"progress\":{\"phase\":\"write\",\"processes\":1,\"bytes\":1}}",
            "{\"result\":{\"computations\":[{\"name\":\"a\",\"host\":\"h\",\"state\":\"running\",\"roots\":[1],\"processes\":1,"
                    + "\"threads\":1,\"lastGeneration\":1,\"lastPauseNanos\":1000000,\"lastBytes\":123456,\"dir\":\"/d\"}],"
                    + "\"generations\":[{\"name\":\"a\",\"generation\":1,\"dir\":\"/d\",\"path\":\"/d/0001\",\"processes\":1,"
                    + "\"threads\":1,\"pauseNanos\":1,\"totalNanos\":1,\"bytes\":1}],\"killed\":[1],\"host\":[{\"what\":\"x\","
                    + "\"ok\":true,\"detail\":\"d\"}],\"problems\":[]}}");

    private Training() {}

    public static void main(String[] arguments) throws IOException {
        PrintStream output = new PrintStream(OutputStream.nullOutputStream(), true, StandardCharsets.UTF_8);
        System.setOut(output);
        PrintStream complaints = System.err;
        System.setErr(output);
        Path directory = Files.createTempDirectory("stasis-training");
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            StateDirectory home = new StateDirectory(directory);
            server.bind(UnixDomainSocketAddress.of(home.socket()));
            Thread.ofPlatform().daemon().start(() -> serve(server));
            StasisCommand.trainWith(home);
            for (String line : List.of(
                    "ps",
                    "ps --json",
                    "checkpoint a",
                    "checkpoint --all --json",
                    "kill a",
                    "check",
                    "ps --help",
                    "launch --help",
                    "restart --help",
                    "checkpoint")) {
                Main.run(null, line.split(" "));
            }
            Main.run(null, "--help");
            Libc.call(SystemCall.GETPID);
            Libc.address(Libc.buffer(8));
        } finally {
            System.setErr(complaints);
            StasisCommand.trainWith(null);
            Files.deleteIfExists(directory.resolve("agent.sock"));
            Files.deleteIfExists(directory);
        }
    }

    private static void serve(ServerSocketChannel server) {
        while (server.isOpen()) {
            try (SocketChannel channel = server.accept()) {
                ByteBuffer request = ByteBuffer.allocate(4096);
                for (String answer : ANSWERS) {
                    channel.write(ByteBuffer.wrap((answer + "\n").getBytes(StandardCharsets.UTF_8)));
                }
                while (channel.read(request.clear()) >= 0) {
                    Json.write(Map.of("read", request.position()));
                }
            } catch (IOException e) {
                // The client has gone; the next one may come.
                continue;
            }
        }
    }
}
