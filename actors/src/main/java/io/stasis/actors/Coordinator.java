package io.stasis.actors;

import akka.actor.NoSerializationVerificationNeeded;
import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.AskPattern;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.receptionist.Receptionist;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * Knows the computations and the node agents: one for all agents of a cluster (a singleton there), or the only one of a
 * host that is in none.
 */
public final class Coordinator extends AbstractBehavior<Coordinator.Command> {
    public sealed interface Command extends Message {}

    record NodeUp(String host, ActorRef<NodeAgent.Command> node) implements Command {}

    record Nodes(List<ActorRef<NodeAgent.Command>> nodes) implements Command, NoSerializationVerificationNeeded {}

    /** @param keyFile of the key to sign with, null for none */
    record Register(
            String name, String directory, int intervalSeconds, String keyFile, Tree tree, ActorRef<Answer> replyTo)
            implements Command {}

    /**
     * @param name of a computation, or null when {@code pid} names its root
     * @param directory image directory, null for the computation's own
     * @param workingDirectory of the command, for a default directory
     * @param keyFile of the key to sign with, null for the computation's own, if any
     */
    record Checkpoint(
            String host,
            String name,
            int pid,
            String directory,
            String workingDirectory,
            boolean kill,
            String keyFile,
            ActorRef<Answer> replyTo)
            implements Command {}

    /** @param requiredKey base64 of the public key that must have signed the generation, null for none */
    record PrepareRestart(
            String name,
            String host,
            String directory,
            int generation,
            RestartOptions options,
            String requiredKey,
            ActorRef<Answer> replyTo)
            implements Command {}

    record FinishRestart(String name, String operation, int stub, ActorRef<Answer> replyTo) implements Command {}

    record CancelRestart(String name, String operation) implements Command {}

    record ListAll(ActorRef<Answer> replyTo) implements Command {}

    record Kill(String host, String name, int pid, long graceMillis, ActorRef<Answer> replyTo) implements Command {}

    /** Goes on in the actor after an answer came. Local only. */
    record Continue(Runnable next) implements Command, NoSerializationVerificationNeeded {}

    private static final Duration PATIENCE = Duration.ofSeconds(8);

    private final Generations generations;
    private final Map<String, ActorRef<ComputationActor.Command>> computations = new TreeMap<>();
    private final Map<String, ActorRef<NodeAgent.Command>> nodes = new LinkedHashMap<>();

    private Coordinator(ActorContext<Command> context, Generations generations) {
        super(context);
        this.generations = generations;
        generations.computations().forEach(this::computation);
        ActorRef<Receptionist.Listing> listings = context.messageAdapter(
                Receptionist.Listing.class,
                listing -> new Nodes(List.copyOf(listing.getServiceInstances(NodeAgent.SERVICE))));
        context.getSystem().receptionist().tell(Receptionist.subscribe(NodeAgent.SERVICE, listings));
    }

    static Behavior<Command> create(Generations generations) {
        return Behaviors.setup(context -> new Coordinator(context, generations));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Nodes.class, this::nodesChanged)
                .onMessage(NodeUp.class, this::nodeUp)
                .onMessage(
                        Register.class,
                        m -> tell(
                                m.name,
                                new ComputationActor.Register(
                                        m.tree, m.directory, m.intervalSeconds, m.keyFile, m.replyTo)))
                .onMessage(Checkpoint.class, this::checkpoint)
                .onMessage(
                        PrepareRestart.class,
                        m -> tell(
                                m.name,
                                new ComputationActor.PrepareRestart(
                                        m.host,
                                        m.directory,
                                        m.generation,
                                        m.options,
                                        m.requiredKey,
                                        "restart command",
                                        m.replyTo)))
                .onMessage(
                        FinishRestart.class,
                        m -> tell(m.name, new ComputationActor.FinishRestart(m.operation, m.stub, m.replyTo)))
                .onMessage(CancelRestart.class, m -> tell(m.name, new ComputationActor.CancelRestart(m.operation)))
                .onMessage(ListAll.class, this::listAll)
                .onMessage(Kill.class, this::kill)
                .onMessage(Continue.class, m -> {
                    m.next.run();
                    return this;
                })
                .build();
    }

    private ActorRef<ComputationActor.Command> computation(String name) {
        return computations.computeIfAbsent(name, key -> {
            ActorRef<ComputationActor.Command> made =
                    getContext().spawnAnonymous(ComputationActor.create(key, generations));
            nodes.forEach((host, node) -> made.tell(new ComputationActor.NodeKnown(host, node)));
            return made;
        });
    }

    private Behavior<Command> tell(String name, ComputationActor.Command command) {
        computation(name).tell(command);
        return this;
    }

    private Behavior<Command> nodesChanged(Nodes changed) {
        // An empty listing is the receptionist's first word, before it knows anybody.
        if (!changed.nodes.isEmpty()) {
            nodes.values().removeIf(node -> !changed.nodes.contains(node));
        }
        for (ActorRef<NodeAgent.Command> node : changed.nodes) {
            node.tell(new NodeAgent.WhoAreYou(getContext().getSelf()));
        }
        return this;
    }

    private Behavior<Command> nodeUp(NodeUp up) {
        nodes.put(up.host, up.node);
        computations.values().forEach(c -> c.tell(new ComputationActor.NodeKnown(up.host, up.node)));
        return this;
    }

    private Behavior<Command> checkpoint(Checkpoint checkpoint) {
        if (checkpoint.name != null) {
            if (!computations.containsKey(checkpoint.name)) {
                checkpoint.replyTo.tell(noSuch("computation " + checkpoint.name));
                return this;
            }
            return tell(
                    checkpoint.name,
                    new ComputationActor.Checkpoint(
                            checkpoint.directory,
                            checkpoint.kill,
                            checkpoint.keyFile,
                            "checkpoint command",
                            checkpoint.replyTo));
        }
        byRoot(checkpoint.host, checkpoint.pid, known -> {
            if (known != null) {
                tell(
                        known,
                        new ComputationActor.Checkpoint(
                                checkpoint.directory,
                                checkpoint.kill,
                                checkpoint.keyFile,
                                "checkpoint command",
                                checkpoint.replyTo));
            } else {
                attach(checkpoint);
            }
        });
        return this;
    }

    private static Answer.Refused noSuch(String what) {
        return new Answer.Refused("no-such", 6, "there is no " + what + "; `stasis ps` shows what runs");
    }

    /** A tree that was not launched by Stasis becomes a computation with its first checkpoint. */
    private void attach(Checkpoint checkpoint) {
        ActorRef<NodeAgent.Command> node = nodes.get(checkpoint.host);
        if (node == null) {
            checkpoint.replyTo.tell(noSuch("agent of host " + checkpoint.host));
            return;
        }
        Tree asked = new Tree(checkpoint.host, checkpoint.pid, 0, null, List.of());
        ask(node, replyTo -> new NodeAgent.Inspect(List.of(asked), replyTo), answer -> {
            if (!(answer instanceof Answer.Inspected(String host, List<Answer.Running> running)) || running.isEmpty()) {
                checkpoint.replyTo.tell(noSuch("process " + checkpoint.pid));
                return;
            }
            Tree tree = running.getFirst().tree();
            String command = Path.of(tree.command().getFirst()).getFileName().toString();
            String name = command.replaceAll("[^A-Za-z0-9._-]", "_") + "-" + tree.root();
            String directory = checkpoint.directory != null
                    ? checkpoint.directory
                    : Path.of(checkpoint.workingDirectory, name + ".ckpt").toString();
            ActorRef<ComputationActor.Command> computation = computation(name);
            AskPattern.<ComputationActor.Command, Answer>ask(
                            computation,
                            replyTo -> new ComputationActor.Register(tree, directory, 0, null, replyTo),
                            PATIENCE,
                            getContext().getSystem().scheduler())
                    .whenComplete((registered, failure) -> {
                        if (registered instanceof Answer.Refused refused) {
                            checkpoint.replyTo.tell(refused);
                        } else {
                            computation.tell(new ComputationActor.Checkpoint(
                                    directory,
                                    checkpoint.kill,
                                    checkpoint.keyFile,
                                    "checkpoint command",
                                    checkpoint.replyTo));
                        }
                    });
        });
    }

    private void ask(
            ActorRef<NodeAgent.Command> node,
            akka.japi.function.Function<ActorRef<Answer>, NodeAgent.Command> message,
            Consumer<Answer> then) {
        ActorRef<Command> self = getContext().getSelf();
        AskPattern.<NodeAgent.Command, Answer>ask(
                        node, message, PATIENCE, getContext().getSystem().scheduler())
                .whenComplete((answer, failure) -> self.tell(
                        new Continue(() -> then.accept(failure == null ? answer : Answer.Refused.of(failure)))));
    }

    /** Asks every computation; goes on with their descriptions. */
    private void describeAll(Consumer<List<Answer.Described>> then) {
        List<CompletableFuture<Answer>> answers = new ArrayList<>();
        for (ActorRef<ComputationActor.Command> computation : computations.values()) {
            answers.add(AskPattern.<ComputationActor.Command, Answer>ask(
                            computation,
                            ComputationActor.Describe::new,
                            PATIENCE,
                            getContext().getSystem().scheduler())
                    .toCompletableFuture());
        }
        ActorRef<Command> self = getContext().getSelf();
        CompletableFuture.allOf(answers.toArray(CompletableFuture[]::new))
                .whenComplete((all, failure) -> self.tell(new Continue(() -> then.accept(answers.stream()
                        .filter(answer -> !answer.isCompletedExceptionally())
                        .map(CompletableFuture::join)
                        .filter(Answer.Described.class::isInstance)
                        .map(Answer.Described.class::cast)
                        .toList()))));
    }

    private void byRoot(String host, int pid, Consumer<String> then) {
        describeAll(all -> then.accept(all.stream()
                .filter(d -> !d.state().equals("ended"))
                .filter(d -> d.trees().stream().anyMatch(tree -> tree.host().equals(host) && tree.root() == pid))
                .map(Answer.Described::name)
                .findFirst()
                .orElse(null)));
    }

    private Behavior<Command> listAll(ListAll list) {
        describeAll(all -> list.replyTo.tell(new Answer.Listed(
                nodes.keySet().stream().sorted().toList(),
                all.stream().filter(d -> !d.state().equals("ended")).toList())));
        return this;
    }

    private Behavior<Command> kill(Kill kill) {
        if (kill.name != null) {
            if (!computations.containsKey(kill.name)) {
                kill.replyTo.tell(noSuch("computation " + kill.name));
                return this;
            }
            return tell(kill.name, new ComputationActor.Kill(kill.graceMillis, kill.replyTo));
        }
        byRoot(kill.host, kill.pid, known -> {
            if (known == null) {
                kill.replyTo.tell(noSuch("computation with root process " + kill.pid));
            } else {
                tell(known, new ComputationActor.Kill(kill.graceMillis, kill.replyTo));
            }
        });
        return this;
    }
}
