package io.stasis.actors;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.SupervisorStrategy;
import akka.actor.typed.javadsl.Behaviors;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.ClusterSingleton;
import akka.cluster.typed.SingletonActor;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import io.stasis.actors.control.ControlServer;
import io.stasis.actors.journal.OpenLogs;
import io.stasis.engine.Engine;
import io.stasis.engine.LinuxEngine;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

/**
 * The resident process of one user on one host: the actor system, the event log and the control socket.
 *
 * <pre>{@code
 * try (Agent agent = Agent.start(AgentConfig.local(directory, "alpha"))) {
 *     agent.awaitTermination();
 * }
 * }</pre>
 */
public final class Agent implements AutoCloseable {
    /** Version of Stasis, checked against every command's. */
    public static final String VERSION = "0.1.0";

    private final AgentConfig config;
    private final ActorSystem<Void> system;
    private final ActorRef<Coordinator.Command> coordinator;
    private final ControlServer server;
    private final FileChannel lock;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final long startedNanos = System.nanoTime();

    private Agent(
            AgentConfig config,
            ActorSystem<Void> system,
            ActorRef<Coordinator.Command> coordinator,
            Engine engine,
            FileChannel lock)
            throws IOException {
        this.config = config;
        this.system = system;
        this.coordinator = coordinator;
        this.lock = lock;
        this.server = new ControlServer(this, engine);
    }

    /** @throws AgentStartException when another agent runs there, or the directory or log cannot be used */
    public static Agent start(AgentConfig config) {
        return start(config, new LinuxEngine());
    }

    /** For tests: with another engine. */
    static Agent start(AgentConfig config, Engine engine) {
        FileChannel lock = null;
        try {
            makeDirectories(config);
            lock = lock(config);
            OpenLogs.Shared logs = OpenLogs.open(config.eventLog());
            Generations generations = new Generations(logs, VERSION);
            ActorSystem<Void> system = ActorSystem.create(Behaviors.empty(), "stasis", akkaConfig(config));
            reportRecovery(system, logs);
            ActorRef<NodeAgent.Command> node = system.systemActorOf(
                    supervised(NodeAgent.create(config.host(), engine, config.workDirectory())),
                    "node-agent",
                    akka.actor.typed.Props.empty());
            ActorRef<Coordinator.Command> coordinator = coordinator(config, system, generations);
            // The receptionist tells of it too, only later than the first command may come.
            coordinator.tell(new Coordinator.NodeUp(config.host(), node));
            Agent agent = new Agent(config, system, coordinator, engine, lock);
            agent.server.start();
            // Aside: a command that comes meanwhile is served, only slower.
            Thread.ofPlatform().daemon().name("warm-up").start(engine::warmUp);
            return agent;
        } catch (IOException | RuntimeException e) {
            closeQuietly(lock);
            OpenLogs.close(config.eventLog());
            throw e instanceof AgentStartException known
                    ? known
                    : new AgentStartException(
                            "cannot start the agent in " + config.stateDirectory() + ": " + e.getMessage(), e);
        }
    }

    private static void closeQuietly(FileChannel channel) {
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                org.slf4j.LoggerFactory.getLogger(Agent.class).debug("closing the lock", e);
            }
        }
    }

    private static void makeDirectories(AgentConfig config) throws IOException {
        var mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
        for (Path directory : List.of(config.stateDirectory(), config.workDirectory())) {
            if (!Files.isDirectory(directory)) {
                Files.createDirectories(directory, mode);
            }
        }
    }

    private static FileChannel lock(AgentConfig config) throws IOException {
        FileChannel channel = FileChannel.open(config.lock(), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        FileLock held = channel.tryLock();
        if (held == null) {
            channel.close();
            throw new AgentStartException(
                    "another agent runs already in " + config.stateDirectory() + "; end it with `stasis agent --stop`",
                    null);
        }
        return channel;
    }

    private static void reportRecovery(ActorSystem<Void> system, OpenLogs.Shared logs) {
        var recovery = logs.log().recovered();
        if (recovery.bytes() > 0) {
            system.log()
                    .warn(
                            "cut {} bytes of a torn tail from {} after record {}",
                            recovery.bytes(),
                            logs.log().file(),
                            recovery.records());
        }
    }

    private static Config akkaConfig(AgentConfig config) {
        StringBuilder text = new StringBuilder();
        text.append("stasis.journal.file = \"").append(config.eventLog()).append("\"\n");
        if (config.isClustered()) {
            checkAddresses(config);
            text.append("akka.actor.provider = cluster\n");
            text.append("akka.remote.artery.canonical.hostname = \"")
                    .append(config.clusterHost())
                    .append("\"\n");
            text.append("akka.remote.artery.canonical.port = ")
                    .append(config.clusterPort())
                    .append('\n');
            if (config.join() != null) {
                text.append("akka.cluster.seed-nodes = [\"akka://stasis@")
                        .append(config.join())
                        .append("\"]\n");
            }
        }
        return ConfigFactory.parseString(text.toString())
                .withFallback(ConfigFactory.parseResources("stasis-cluster.conf"))
                .withFallback(ConfigFactory.load());
    }

    /** A member that others cannot reach is worse than none. */
    private static void checkAddresses(AgentConfig config) {
        if (config.join() != null && isLoopback(config.clusterHost()) && !isLoopback(hostOf(config.join()))) {
            throw new AgentStartException(
                    "this agent would advertise the loopback address " + config.clusterHost()
                            + ", where the cluster at " + config.join()
                            + " could not reach it; give a reachable address with --host",
                    null);
        }
    }

    private static String hostOf(String hostPort) {
        return hostPort.substring(0, Math.max(0, hostPort.lastIndexOf(':')));
    }

    private static boolean isLoopback(String host) {
        return host.startsWith("127.") || host.equals("localhost") || host.equals("::1");
    }

    private static <T> Behavior<T> supervised(Behavior<T> behavior) {
        return Behaviors.supervise(behavior).onFailure(SupervisorStrategy.restart());
    }

    private static ActorRef<Coordinator.Command> coordinator(
            AgentConfig config, ActorSystem<Void> system, Generations generations) {
        if (!config.isClustered()) {
            return system.systemActorOf(
                    supervised(Coordinator.create(generations)), "coordinator", akka.actor.typed.Props.empty());
        }
        if (config.join() == null) {
            Cluster cluster = Cluster.get(system);
            cluster.manager()
                    .tell(akka.cluster.typed.Join.create(cluster.selfMember().address()));
        }
        return ClusterSingleton.get(system)
                .init(SingletonActor.of(supervised(Coordinator.create(generations)), "coordinator"));
    }

    public AgentConfig config() {
        return config;
    }

    public ActorSystem<Void> system() {
        return system;
    }

    public ActorRef<Coordinator.Command> coordinator() {
        return coordinator;
    }

    public Duration uptime() {
        return Duration.ofNanos(System.nanoTime() - startedNanos);
    }

    /** "host:port" that other agents join; empty when in no cluster. */
    public Optional<String> clusterAddress() {
        if (!config.isClustered()) {
            return Optional.empty();
        }
        var address = Cluster.get(system).selfMember().address();
        return Optional.of(address.host().getOrElse(config::clusterHost) + ":"
                + address.getPort().orElse(0));
    }

    /** Addresses of the members that are up; empty when in no cluster. */
    public List<String> clusterMembers() {
        List<String> members = new ArrayList<>();
        if (config.isClustered()) {
            Cluster.get(system)
                    .state()
                    .getMembers()
                    .forEach(member -> members.add(member.address().hostPort()));
        }
        return members;
    }

    /** Ends the agent from another thread; {@link #awaitTermination} returns. */
    public void stop() {
        ended.countDown();
    }

    /** Blocks until {@link #stop}. */
    public void awaitTermination() {
        try {
            ended.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends everything. Running programs are not touched. */
    @Override
    public void close() {
        ended.countDown();
        server.close();
        system.terminate();
        try {
            system.getWhenTerminated().toCompletableFuture().get(10, java.util.concurrent.TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException e) {
            system.log().warn("the actor system did not end in time", e);
        }
        OpenLogs.close(config.eventLog());
        closeQuietly(lock);
    }
}
