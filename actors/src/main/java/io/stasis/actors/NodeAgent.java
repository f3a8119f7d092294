package io.stasis.actors;

import akka.actor.NoSerializationVerificationNeeded;
import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.receptionist.Receptionist;
import akka.actor.typed.receptionist.ServiceKey;
import io.stasis.engine.CheckpointRequest;
import io.stasis.engine.Engine;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.RestoreRequest;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import io.stasis.engine.lifecycle.Phase;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/** One host's hands: opens sessions of the engine and takes the trees of this host through their phases. */
public final class NodeAgent extends AbstractBehavior<NodeAgent.Command> {
    /** Under which coordinators find the node agents. */
    public static final ServiceKey<Command> SERVICE = ServiceKey.create(Command.class, "node-agent");

    /** Commands. {@code operation} names one checkpoint or restart. */
    public sealed interface Command extends Message {}

    /** Asks for {@link Coordinator.NodeUp}. */
    record WhoAreYou(ActorRef<Coordinator.Command> replyTo) implements Command {}

    /** @param directory this host's directory in the generation that is written */
    record OpenCheckpoint(String operation, Tree tree, String directory, ActorRef<Answer> replyTo) implements Command {}

    record OpenRestore(
            String operation, String generation, String imageHost, RestartOptions options, ActorRef<Answer> replyTo)
            implements Command {}

    /** @param stub pid of the stub that the restart command spawned; 0 when there is none to spawn it */
    record Adopt(String operation, int stub, ActorRef<Answer> replyTo) implements Command {}

    record RunPhase(String operation, Phase phase, ActorRef<Answer> replyTo) implements Command {}

    /** Lets everything go. Also ends an operation that has succeeded. */
    record Abandon(String operation, String reason, ActorRef<Answer> replyTo) implements Command {}

    record Inspect(List<Tree> trees, ActorRef<Answer> replyTo) implements Command {}

    record Kill(Tree tree, long graceMillis, ActorRef<Answer> replyTo) implements Command {}

    /** A thread or connection has logged what happened to it. */
    record Recorded(String operation) implements Command {}

    record FromProcess(String operation, ProcessActor.Report report) implements Command {}

    /** The result of native work of an operation; runs in this actor. */
    record Continue(String operation, Runnable next) implements Command, NoSerializationVerificationNeeded {}

    private final String host;
    private final Engine engine;
    private final Path workDirectory;
    private final Executor blocking;
    private final Map<String, TreeOperation> operations = new HashMap<>();

    private NodeAgent(ActorContext<Command> context, String host, Engine engine, Path workDirectory) {
        super(context);
        this.host = host;
        this.engine = engine;
        this.workDirectory = workDirectory;
        this.blocking = context.getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        context.getSystem().receptionist().tell(Receptionist.register(SERVICE, context.getSelf()));
    }

    /** @param workDirectory private directory on a file system from which programs may be executed */
    public static Behavior<Command> create(String host, Engine engine, Path workDirectory) {
        return Behaviors.setup(context -> new NodeAgent(context, host, engine, workDirectory));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(WhoAreYou.class, this::introduce)
                .onMessage(OpenCheckpoint.class, this::openCheckpoint)
                .onMessage(OpenRestore.class, this::openRestore)
                .onMessage(Adopt.class, m -> inOperation(m.operation, m.replyTo, o -> o.adopt(m.stub, m.replyTo)))
                .onMessage(RunPhase.class, m -> inOperation(m.operation, m.replyTo, o -> o.run(m.phase, m.replyTo)))
                .onMessage(Abandon.class, this::abandon)
                .onMessage(Inspect.class, this::inspect)
                .onMessage(Kill.class, this::kill)
                .onMessage(Recorded.class, m -> inOperation(m.operation, null, TreeOperation::recorded))
                .onMessage(FromProcess.class, m -> inOperation(m.operation, null, o -> o.reported(m.report)))
                .onMessage(Continue.class, m -> {
                    m.next.run();
                    return this;
                })
                .build();
    }

    private Behavior<Command> introduce(WhoAreYou question) {
        question.replyTo.tell(new Coordinator.NodeUp(host, getContext().getSelf()));
        return this;
    }

    private Behavior<Command> inOperation(
            String id, ActorRef<Answer> replyTo, java.util.function.Consumer<TreeOperation> action) {
        TreeOperation operation = operations.get(id);
        if (operation != null) {
            action.accept(operation);
        } else if (replyTo != null) {
            replyTo.tell(new Answer.PhaseFailed(
                    id, host, new Answer.Refused("failed", 1, "the agent of " + host + " knows no operation " + id)));
        }
        return this;
    }

    private Behavior<Command> openCheckpoint(OpenCheckpoint open) {
        var request = request(open.tree, Path.of(open.directory));
        TreeOperation operation = new TreeOperation(getContext(), host, open.operation);
        operations.put(open.operation, operation);
        operation.openCheckpoint(engine, request, open.replyTo);
        return this;
    }

    private CheckpointRequest request(Tree tree, Path directory) {
        return new CheckpointRequest(host, List.of(tree.root()), tree.cookie(), directory, host);
    }

    private Behavior<Command> openRestore(OpenRestore open) {
        var request = new RestoreRequest(host, Path.of(open.generation), open.imageHost, workDirectory, open.options);
        TreeOperation operation = new TreeOperation(getContext(), host, open.operation);
        operations.put(open.operation, operation);
        operation.openRestore(engine, request, open.replyTo);
        return this;
    }

    private Behavior<Command> abandon(Abandon abandon) {
        TreeOperation operation = operations.remove(abandon.operation);
        if (operation == null) {
            abandon.replyTo.tell(new Answer.Abandoned(abandon.operation, host));
        } else {
            operation.abandon(abandon.reason, abandon.replyTo);
        }
        return this;
    }

    private Behavior<Command> inspect(Inspect inspect) {
        answer(inspect.replyTo, () -> {
            List<Answer.Running> running = new ArrayList<>();
            for (Tree tree : inspect.trees) {
                engine.status(request(tree, null), tree.startTime())
                        .ifPresent(status -> running.add(new Answer.Running(
                                new Tree(
                                        tree.host(),
                                        tree.root(),
                                        status.startTime(),
                                        tree.cookie(),
                                        tree.command().isEmpty() ? commandOf(status) : tree.command()),
                                status.processes(),
                                status.threads())));
            }
            return new Answer.Inspected(host, running);
        });
        return this;
    }

    private static List<String> commandOf(Engine.TreeStatus status) {
        return status.commandLine().isEmpty() ? List.of(status.name()) : status.commandLine();
    }

    private Behavior<Command> kill(Kill kill) {
        answer(kill.replyTo, () -> new Answer.Killed(engine.kill(request(kill.tree, null), kill.graceMillis)));
        return this;
    }

    /** Does blocking work aside and sends its result. */
    private void answer(ActorRef<Answer> replyTo, Supplier<Answer> work) {
        CompletionStage<Answer> result = CompletableFuture.supplyAsync(work, blocking);
        result.whenComplete((answer, failure) -> replyTo.tell(failure == null ? answer : Answer.Refused.of(failure)));
    }
}
