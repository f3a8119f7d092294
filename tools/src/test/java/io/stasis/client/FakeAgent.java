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
                send(channel, line);
            }
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
