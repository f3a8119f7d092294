package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.client.Protocol;
import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A command and an agent of different versions do not work together, and say how to get out of it. */
class HandshakeIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @ParameterizedTest
    @CsvSource({"99.0.0, 0, 0", "'', 1, 0", "'', 0, 1"})
    void anAgentTurnsAwayACommandOfAnotherVersion(String version, int protocol, int format) throws IOException {
        var target = stasis.launch(Programs.c("counter"));
        String hello = hello(
                version.isEmpty() ? Protocol.VERSION : version, Protocol.NUMBER + protocol, Protocol.FORMAT + format);
        String answer = converse(hello + "{\"request\":\"checkpoint\",\"name\":\"" + target.name() + "\"}\n");
        assertThat(answer)
                .contains("\"error\"")
                .contains("\"version\"")
                .contains("stasis agent --stop")
                .doesNotContain("\"result\"");
        target.awaitMoreTicks();
        target.checkpoint();
        target.finish();
    }

    @ParameterizedTest
    @CsvSource({"99.0.0, 0, 0", "'', 1, 0", "'', 0, 1"})
    void aCommandTurnsAwayFromAnAgentOfAnotherVersion(String version, int protocol, int format) throws Exception {
        Path directory = Files.createTempDirectory(Path.of("/tmp"), "st-fake-");
        Path socket = directory.resolve("agent.sock");
        String hello = hello(
                version.isEmpty() ? Protocol.VERSION : version, Protocol.NUMBER + protocol, Protocol.FORMAT + format);
        try (var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(UnixDomainSocketAddress.of(socket));
            var greeted = new AtomicInteger();
            var agent = Thread.ofPlatform().daemon().start(() -> {
                while (true) {
                    try (var connection = server.accept()) {
                        lines(connection).readLine();
                        write(connection, hello);
                        greeted.incrementAndGet();
                    } catch (IOException e) {
                        return; // the test is over
                    }
                }
            });
            stasis.run(
                            java.util.List.of("env", "STASIS_HOME=" + directory),
                            java.util.List.of("checkpoint", "anything"))
                    .expectRefusal(3, "stasis agent --stop", Protocol.VERSION);
            assertThat(greeted.get()).isPositive();
            assertThat(agent.isDaemon()).isTrue();
        } finally {
            io.stasis.tests.harness.DirectoryTree.delete(directory);
        }
    }

    @Test
    void nonsenseOnTheSocketDoesNotHarmTheAgent() throws IOException {
        long agent = stasis.launch(Programs.c("counter")).pid() > 0 ? stasis.agent() : 0;
        for (String nonsense : new String[] {
            "\n",
            "{}\n",
            "null\n",
            "[1]\n",
            "{\"hello\":7}\n",
            "hello\n",
            "{\"hello\":{\"version\":\"0.1.0\"",
            "\0\0\0\n",
            hello(Protocol.VERSION, Protocol.NUMBER, Protocol.FORMAT) + "{\"request\":\"fly\"}\n",
            hello(Protocol.VERSION, Protocol.NUMBER, Protocol.FORMAT) + "{\"request\":\"checkpoint\",\"pid\":\"x\"}\n",
            hello(Protocol.VERSION, Protocol.NUMBER, Protocol.FORMAT) + "{\"request\":[]}\n",
            hello(Protocol.VERSION, Protocol.NUMBER, Protocol.FORMAT) + "x".repeat(200_000) + "\n"
        }) {
            assertThat(converse(nonsense)).doesNotContain("\"result\"");
        }
        assertThat(agent).isPositive().isEqualTo(stasis.agent());
    }

    private static String hello(String version, int protocol, int format) {
        return "{\"hello\":{\"version\":\"" + version + "\",\"protocol\":" + protocol + ",\"format\":" + format
                + "}}\n";
    }

    /** What the agent answers to this, until it hangs up or this side has nothing more to say. */
    private static String converse(String text) throws IOException {
        try (var channel =
                SocketChannel.open(UnixDomainSocketAddress.of(stasis.state().resolve("agent.sock")))) {
            var answers = new StringBuilder();
            try {
                write(channel, text);
                channel.shutdownOutput();
                var reader = lines(channel);
                for (String line; (line = reader.readLine()) != null; ) {
                    answers.append(line).append('\n');
                }
            } catch (IOException e) {
                answers.append(e); // it hung up in the middle, which is its right
            }
            return answers.toString();
        }
    }

    private static BufferedReader lines(SocketChannel channel) {
        return new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
    }

    private static void write(SocketChannel channel, String text) throws IOException {
        var bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
    }
}
