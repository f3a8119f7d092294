package io.stasis.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** One connection to the agent: the greeting, one request, its answers. Not safe for several threads. */
final class Connection implements AutoCloseable {
    private final StateDirectory home;
    private final SocketChannel channel;
    private final BufferedReader reader;

    private Connection(StateDirectory home, SocketChannel channel) {
        this.home = home;
        this.channel = channel;
        this.reader = new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
    }

    /**
     * Connects and greets.
     *
     * @throws StasisException code "no-agent" when nobody listens, "version" when the agent is of another version
     */
    static Connection open(StateDirectory home) {
        SocketChannel channel = null;
        try {
            channel = SocketChannel.open(home.address());
            Connection connection = new Connection(home, channel);
            connection.greet();
            return connection;
        } catch (IOException e) {
            closeQuietly(channel);
            throw new StasisException(
                    "no-agent", ExitCode.NO_AGENT, "no agent listens on " + home.socket() + ": " + e.getMessage(), e);
        } catch (StasisException e) {
            closeQuietly(channel);
            throw e;
        }
    }

    private void greet() {
        Map<String, Object> hello = new LinkedHashMap<>();
        hello.put("version", Protocol.VERSION);
        hello.put("protocol", Protocol.NUMBER);
        hello.put("format", Protocol.FORMAT);
        send(Map.of("hello", hello));
        Map<String, Object> answer = Json.object(receive().get("hello"));
        String version = Json.string(answer, "version", "unknown");
        if (!version.equals(Protocol.VERSION)
                || Json.number(answer, "protocol", -1) != Protocol.NUMBER
                || Json.number(answer, "format", -1) != Protocol.FORMAT) {
            throw new StasisException(
                    "version",
                    ExitCode.NO_AGENT,
                    "the agent (pid " + Json.number(answer, "pid", 0) + ") is of version " + version
                            + ", this command of version " + Protocol.VERSION
                            + ": end it with 'stasis agent --stop', it starts again by itself");
        }
    }

    void send(Map<String, ?> line) {
        try {
            ByteBuffer bytes = ByteBuffer.wrap((Json.write(line) + "\n").getBytes(StandardCharsets.UTF_8));
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        } catch (IOException e) {
            throw lost(e);
        }
    }

    /**
     * The agent's next line.
     *
     * @throws StasisException when it is an error, or the agent hung up
     */
    Map<String, Object> receive() {
        Map<String, Object> line;
        try {
            String text = reader.readLine();
            if (text == null) {
                throw lost(null);
            }
            line = Json.readObject(text);
        } catch (IOException | IllegalArgumentException e) {
            throw lost(e);
        }
        if (line.containsKey("error")) {
            Map<String, Object> error = Json.object(line.get("error"));
            throw new StasisException(
                    Json.string(error, "code", "failed"),
                    (int) Json.number(error, "exit", ExitCode.FAILED),
                    Json.string(error, "message", "the agent refused without saying why"));
        }
        return line;
    }

    private StasisException lost(Exception cause) {
        return new StasisException(
                "agent-lost",
                ExitCode.NO_AGENT,
                "the agent hung up in the middle of a request"
                        + (cause == null ? "" : " (" + cause.getMessage() + ")") + "; its log " + home.agentLog()
                        + " may say why. Running programs go on",
                cause);
    }

    @Override
    public void close() {
        closeQuietly(channel);
    }

    private static void closeQuietly(SocketChannel channel) {
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                // The connection is of no use any more, with or without an error.
                return;
            }
        }
    }
}
