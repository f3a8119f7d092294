package io.stasis.actors;

import java.nio.file.Path;

/**
 * How an agent is to run.
 *
 * @param stateDirectory where its socket, event log and lock lie, mode 0700
 * @param host this host's name
 * @param clusterHost address that other agents reach this one by; null for an agent in no cluster
 * @param clusterPort TCP port, 0 for any free one
 * @param join "host:port" of a member of the cluster to join, null to found one
 */
public record AgentConfig(Path stateDirectory, String host, String clusterHost, int clusterPort, String join) {
    /** An agent in no cluster. */
    public static AgentConfig local(Path stateDirectory, String host) {
        return new AgentConfig(stateDirectory, host, null, 0, null);
    }

    public Path socket() {
        return stateDirectory.resolve("agent.sock");
    }

    public Path eventLog() {
        return stateDirectory.resolve("events.log");
    }

    Path lock() {
        return stateDirectory.resolve("agent.lock");
    }

    /** Private directory for executables of stubs. */
    Path workDirectory() {
        return stateDirectory.resolve("work");
    }

    boolean isClustered() {
        return clusterHost != null;
    }
}
