package io.stasis.tools.commands;

import io.stasis.actors.Agent;
import io.stasis.actors.AgentConfig;
import io.stasis.actors.AgentStartException;
import io.stasis.client.ExitCode;
import io.stasis.client.StasisException;
import io.stasis.client.StateDirectory;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Collections;

/** Runs an agent in this process. Apart from the commands, which load no actor system. */
final class AgentRun {
    private AgentRun() {}

    /** Of this user and host, in no cluster. */
    static AgentConfig local(StateDirectory home) {
        return AgentConfig.local(home.path(), StateDirectory.hostName());
    }

    /**
     * A member of a cluster.
     *
     * @param address to be advertised, null to choose one
     * @param join "host:port", null to found a cluster
     */
    static AgentConfig clustered(StateDirectory home, String address, int port, String join) {
        return new AgentConfig(
                home.path(), StateDirectory.hostName(), address == null ? ownAddress() : address, port, join);
    }

    /** The first address of a real interface that is up; loopback only where there is no other. */
    private static String ownAddress() {
        try {
            for (NetworkInterface each : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                if (each.isUp() && !each.isLoopback()) {
                    for (InetAddress address : Collections.list(each.getInetAddresses())) {
                        if (address instanceof java.net.Inet4Address && !address.isLinkLocalAddress()) {
                            return address.getHostAddress();
                        }
                    }
                }
            }
        } catch (IOException e) {
            throw new StasisException(
                    "failed", ExitCode.FAILED, "cannot list the network interfaces: " + e.getMessage(), e);
        }
        return "127.0.0.1";
    }

    static Agent start(AgentConfig config) {
        try {
            Agent agent = Agent.start(config);
            Runtime.getRuntime().addShutdownHook(new Thread(agent::close, "shutdown"));
            return agent;
        } catch (AgentStartException e) {
            throw new StasisException("no-agent", ExitCode.NO_AGENT, e.getMessage(), e);
        }
    }

    /** Leaves the session of the command that started it: signals of its terminal are not for the agent. */
    static void becomeDaemon() {
        Libc.call(SystemCall.SETSID);
    }

    /** Writes a file as a whole, for whoever waits for it to appear. */
    static void writePortFile(Path file, String port) {
        try {
            Path temporary = file.resolveSibling(file.getFileName() + ".tmp");
            Files.writeString(temporary, port + "\n");
            Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new StasisException("failed", ExitCode.FAILED, "cannot write the port file " + file + ": " + e, e);
        }
    }
}
