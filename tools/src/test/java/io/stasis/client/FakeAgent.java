package io.stasis.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Stands in for the agent: answers every request with the lines it was given and remembers what it was asked.
 *
 * <p>A line {@code wait} in the script waits for a line from the client.
 */
public final class FakeAgent implements AutoCloseable {
    public static final String WAIT = "wait";

    private final ServerSocketChannel server;
    private final StateDirectory home;
    private final List<String> script;
    private final List<Map<String, Object>> received = new CopyOnWriteArrayList<>();
    private String version = Protocol.VERSION;

    public FakeAgent(Path directory, String... script) throws IOException {
        this.home = new StateDirectory(directory);
        this.script = List.of(script);
        this.server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(home.address());
        Thread.ofVirtual().start(this::serve);
    }

    public FakeAgent ofVersion(String other) {
        version = other;
        return this;
    }

    public StateDirectory home() {
        return home;
    }

    /** Everything clients sent after their greeting. */
    public List<Map<String, Object>> received() {
        return received;
    }

    private void serve() {
        while (server.isOpen()) {
            try (SocketChannel channel = server.accept()) {
                BufferedReader reader = new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
                answer(channel, reader);
            } catch (IOException e) {
                // The client hung up, or the server was closed.
                continue;
            }
        }
    }

    private void answer(SocketChannel channel, BufferedReader reader) throws IOException {
        reader.readLine();
        send(
                channel,
                Json.write(Map.of(
                        "hello", Map.of("version", version, "protocol", 1, "format", 1, "pid", 4711, "host", "here"))));
        String request = reader.readLine();
        if (request == null) {
            return;
        }
        received.add(Json.readObject(request));
        for (String line : script) {
            if (line.equals(WAIT)) {
                received.add(Json.readObject(reader.readLine()));
            } else {
                send(channel, filled(line));
            }
        }
    }

    /** Puts the pid that the client reported, and its process group once it leads one or has ended, into a line. */
    private String filled(String line) throws IOException {
        if (!line.contains("$PID")) {
            return line;
        }
        long pid = Json.number(Json.object(received.getLast().get("spawned")), "pid", 0);
        return line.replace("$PID", Long.toString(pid)).replace("$GROUP", Long.toString(group(pid)));
    }

    private static long group(long pid) throws IOException {
        Path program = Path.of("/proc/" + pid);
        if (Files.notExists(program.resolve("fd/0"))
                || !Files.readSymbolicLink(program.resolve("fd/0")).toString().startsWith("/dev/pts/")) {
            return 0;
        }
        // On a terminal the program makes a group of its own first.
        while (true) {
            String stat = Files.readString(program.resolve("stat"));
            long group =
                    Long.parseLong(stat.substring(stat.lastIndexOf(')') + 2).split(" ")[2]);
            if (group == pid) {
                return group;
            }
            Thread.onSpinWait();
        }
    }

    private static void send(SocketChannel channel, String line) throws IOException {
        channel.write(ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.UTF_8)));
    }

    @Override
    public void close() {
        try {
            server.close();
            Files.deleteIfExists(home.socket());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
