package io.stasis.actors.control;

import io.stasis.actors.Agent;
import io.stasis.engine.Engine;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import jdk.net.ExtendedSocketOptions;
import jdk.net.UnixDomainPrincipal;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Serves the control protocol on the agent's socket: its own user and root only. One virtual thread a connection. */
public final class ControlServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ControlServer.class);

    private final Agent agent;
    private final Engine engine;
    private final ServerSocketChannel server;
    private final Path socket;

    public ControlServer(Agent agent, Engine engine) throws IOException {
        this.agent = agent;
        this.engine = engine;
        this.socket = agent.config().socket();
        // The agent holds its lock: whatever lies here was left by one that was killed.
        Files.deleteIfExists(socket);
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(socket));
        Files.setPosixFilePermissions(socket, PosixFilePermissions.fromString("rw-------"));
    }

    public void start() {
        Thread.ofPlatform().daemon().name("control").start(this::accept);
    }

    private void accept() {
        while (server.isOpen()) {
            try {
                SocketChannel client = server.accept();
                Thread.ofVirtual().start(() -> serve(client));
            } catch (IOException e) {
                if (server.isOpen()) {
                    LOG.error("accepting a connection on {}", socket, e);
                }
            }
        }
    }

    private void serve(SocketChannel client) {
        try (client) {
            UnixDomainPrincipal peer = client.getOption(ExtendedSocketOptions.SO_PEERCRED);
            String own = Files.getOwner(agent.config().stateDirectory()).getName();
            String user = peer.user().getName();
            if (!user.equals(own) && !user.equals("root")) {
                LOG.warn("user {} was refused", user);
                return;
            }
            new ControlSession(agent, engine, client).run();
        } catch (IOException e) {
            LOG.debug("a client went away", e);
        } catch (RuntimeException e) {
            LOG.error("serving a client", e);
        }
    }

    @Override
    public void close() {
        try {
            server.close();
            Files.deleteIfExists(socket);
        } catch (IOException e) {
            LOG.warn("closing {}", socket, e);
        }
    }
}
