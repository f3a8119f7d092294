package io.stasis.actors;

import akka.actor.NoSerializationVerificationNeeded;
import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.TimerScheduler;
import akka.persistence.typed.PersistenceId;
import akka.persistence.typed.RecoveryCompleted;
import akka.persistence.typed.javadsl.CommandHandler;
import akka.persistence.typed.javadsl.Effect;
import akka.persistence.typed.javadsl.EventHandler;
import akka.persistence.typed.javadsl.EventSourcedBehavior;
import akka.persistence.typed.javadsl.SignalHandler;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.ComputationLifecycle.Event;
import io.stasis.engine.lifecycle.ComputationLifecycle.Generation;
import io.stasis.engine.lifecycle.ComputationLifecycle.State;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import io.stasis.engine.lifecycle.Decision;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.image.ImageDirectory.Staging;
import io.stasis.image.seal.SigningKey;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * One computation: takes the node agents of its hosts through the phases of a checkpoint or restart in lock-step, and
 * commits the generation. One operation at a time; what the log says decides.
 */
final class ComputationActor extends EventSourcedBehavior<ComputationActor.Command, Event, State> {
    sealed interface Command extends Message {}

    /** @param keyFile of the key to sign with, null for none */
    record Register(Tree tree, String directory, int intervalSeconds, String keyFile, ActorRef<Answer> replyTo)
            implements Command {}

    /**
     * @param directory image directory, null for the registered one
     * @param keyFile of the key to sign with, null for the registered one, if any
     */
    record Checkpoint(String directory, boolean kill, String keyFile, String cause, ActorRef<Answer> replyTo)
            implements Command {}

    /** @param requiredKey base64 of the public key that must have signed the generation, null for none */
    record PrepareRestart(
            String host,
            String directory,
            int generation,
            RestartOptions options,
            String requiredKey,
            String cause,
            ActorRef<Answer> replyTo)
            implements Command {}

    record FinishRestart(String operation, int stub, ActorRef<Answer> replyTo) implements Command {}

    record CancelRestart(String operation) implements Command {}

    record Describe(ActorRef<Answer> replyTo) implements Command {}

    record Kill(long graceMillis, ActorRef<Answer> replyTo) implements Command {}

    record NodeKnown(String host, ActorRef<NodeAgent.Command> node) implements Command {}

    record FromNode(Answer answer) implements Command {}

    record Tick() implements Command {}

    /** Goes on in the actor after work that was done elsewhere. Local only. */
    record Continue(Supplier<Effect<Event, State>> next) implements Command, NoSerializationVerificationNeeded {}

    /** What is in memory only: an operation that is lost with the agent is closed at recovery. */
    private static final class Running {
        final String id;
        final ActorRef<Answer> client;
        final long startedNanos = System.nanoTime();
        final boolean kill;
        final Set<String> hosts;
        final Set<String> waitingFor = new HashSet<>();
        final List<Answer.PhaseDone> done = new ArrayList<>();
        final Map<String, Answer.PhaseDone> written = new HashMap<>();
        Staging staging;
        SigningKey key;
        long firstSequence;
        long phaseStartedNanos;
        Phase phase;
        int generation;
        long pausedNanos;
        long suspendStartedNanos;
        Generations.Committed committed;
        Answer.Refused failure;
        boolean abandoning;
        ActorRef<Answer> restartClient;
        String cookie;

        Running(String id, ActorRef<Answer> client, boolean kill, Set<String> hosts) {
            this.id = id;
            this.client = client;
            this.kill = kill;
            this.hosts = hosts;
        }
    }

    private final ActorContext<Command> context;
    private final TimerScheduler<Command> timers;
    private final String name;
    private final Generations generations;
    private final Executor blocking;
    private final ActorRef<Answer> fromNodes;
    private final Map<String, ActorRef<NodeAgent.Command>> nodes = new HashMap<>();
    private Running running;
    /** Checkpoints and restarts that came while another one was under way. */
    private final Deque<Command> queued = new ArrayDeque<>();

    private long operations;

    private ComputationActor(
            ActorContext<Command> context, TimerScheduler<Command> timers, String name, Generations generations) {
        super(PersistenceId.ofUniqueId("computation|" + name));
        this.context = context;
        this.timers = timers;
        this.name = name;
        this.generations = generations;
        this.blocking = context.getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        this.fromNodes = context.messageAdapter(Answer.class, FromNode::new);
    }

    static Behavior<Command> create(String name, Generations generations) {
        return Behaviors.setup(
                context -> Behaviors.withTimers(timers -> new ComputationActor(context, timers, name, generations)));
    }

    @Override
    public State emptyState() {
        return ComputationLifecycle.initial();
    }

    @Override
    public EventHandler<State, Event> eventHandler() {
        return newEventHandlerBuilder().forAnyState().onAnyEvent(ComputationLifecycle::evolve);
    }

    @Override
    public SignalHandler<State> signalHandler() {
        return newSignalHandlerBuilder()
                .onSignal(RecoveryCompleted.class, (state, signal) -> {
                    if (state.operation() != null) {
                        context.getSelf()
                                .tell(new Continue(() -> persist(
                                        stateNow,
                                        new ComputationLifecycle.Command.Abort(
                                                "the agent ended in the middle of it; the programs run on"))));
                    }
                    arm(state);
                })
                .build();
    }

    /** The state that the current command sees; continuations need it too. */
    private State stateNow = ComputationLifecycle.initial();

    @Override
    public CommandHandler<Command, Event, State> commandHandler() {
        return (state, command) -> {
            stateNow = state;
            return switch (command) {
                case Register c -> register(state, c);
                case Checkpoint c -> checkpoint(state, c);
                case PrepareRestart c -> prepareRestart(state, c);
                case FinishRestart c -> finishRestart(c);
                case CancelRestart c -> cancel(c);
                case Describe c -> describe(state, c);
                case Kill c -> kill(state, c);
                case NodeKnown c -> {
                    nodes.put(c.host, c.node);
                    yield Effect().none();
                }
                case FromNode(Answer answer) -> fromNode(answer);
                case Tick tick -> tick(state);
                case Continue(Supplier<Effect<Event, State>> next) -> next.get();
            };
        };
    }

    private Effect<Event, State> nothing() {
        return Effect().none();
    }

    /** Persists what the lifecycle decides; a refusal is the caller's to tell. */
    private Effect<Event, State> persist(State state, ComputationLifecycle.Command command) {
        return ComputationLifecycle.decide(state, command) instanceof Decision.Accepted<Event>(List<Event> events)
                ? Effect().persist(events)
                : nothing();
    }

    private Answer.Refused refusal(String reason) {
        return new Answer.Refused("failed", 1, "computation " + name + ": " + reason);
    }

    /** Does blocking work aside, then goes on in this actor. */
    private <T> void aside(Supplier<T> work, java.util.function.BiFunction<T, Throwable, Effect<Event, State>> then) {
        ActorRef<Command> self = context.getSelf();
        CompletableFuture.supplyAsync(work, blocking)
                .whenComplete((result, failure) -> self.tell(new Continue(() -> then.apply(result, failure))));
    }

    // Registration and liveness.

    private Effect<Event, State> register(State state, Register register) {
        if (state.trees().containsKey(register.tree.host())) {
            // Perhaps it has ended and nobody looked.
            ask(
                    state,
                    (alive, known) -> alive.isEmpty() && known
                            ? endAnd("its processes ended", () -> accept(register))
                            : refuse(
                                    register.replyTo,
                                    new Answer.Refused(
                                            "name-taken",
                                            1,
                                            "a computation named " + name + " runs already on " + register.tree.host()
                                                    + "; choose another name with --name")));
            return nothing();
        }
        return accept(register);
    }

    private Effect<Event, State> accept(Register register) {
        return switch (ComputationLifecycle.decide(
                stateNow,
                new ComputationLifecycle.Command.Register(
                        register.tree, register.directory, register.intervalSeconds))) {
            case Decision.Accepted<Event>(List<Event> events) ->
                Effect().persist(withKey(events, register.keyFile)).thenRun((State now) -> {
                    arm(now);
                    register.replyTo.tell(new Answer.Registered(name, register.directory));
                });
            case Decision.Rejected<Event>(String reason) -> refuse(register.replyTo, refusal(reason));
        };
    }

    /** Says with which key generations are signed from now on, when that is another one than before. */
    private List<Event> withKey(List<Event> events, String keyFile) {
        List<Event> all = new ArrayList<>(events);
        if (!java.util.Objects.equals(keyFile, stateNow.keyFile())
                && ComputationLifecycle.decide(stateNow, new ComputationLifecycle.Command.ChooseKey(keyFile))
                        instanceof Decision.Accepted<Event>(List<Event> chosen)) {
            all.addAll(chosen);
        }
        return all;
    }

    private Effect<Event, State> refuse(ActorRef<Answer> client, Answer.Refused why) {
        return Effect().none().thenRun(() -> client.tell(why));
    }

    private Effect<Event, State> endAnd(String reason, Supplier<Effect<Event, State>> next) {
        return switch (ComputationLifecycle.decide(stateNow, new ComputationLifecycle.Command.End(reason))) {
            case Decision.Accepted<Event>(List<Event> events) ->
                Effect().persist(events).thenRun(() -> context.getSelf().tell(new Continue(next)));
            case Decision.Rejected<Event> rejected -> next.get();
        };
    }

    private void arm(State state) {
        if (state.intervalSeconds() > 0 && !state.trees().isEmpty()) {
            timers.startTimerWithFixedDelay("interval", new Tick(), Duration.ofSeconds(state.intervalSeconds()));
        } else {
            timers.cancel("interval");
        }
    }

    /**
     * Asks the node agents which trees run, then goes on in this actor with those that do, and with whether every agent
     * has answered: no answer is no sign of an end.
     */
    private void ask(
            State state, java.util.function.BiFunction<List<Answer.Running>, Boolean, Effect<Event, State>> then) {
        List<CompletableFuture<Answer>> answers = new ArrayList<>();
        for (Tree tree : state.trees().values()) {
            ActorRef<NodeAgent.Command> node = nodes.get(tree.host());
            if (node == null) {
                continue;
            }
            answers.add(akka.actor.typed.javadsl.AskPattern.<NodeAgent.Command, Answer>ask(
                            node,
                            replyTo -> new NodeAgent.Inspect(List.of(tree), replyTo),
                            Duration.ofSeconds(5),
                            context.getSystem().scheduler())
                    .toCompletableFuture());
        }
        ActorRef<Command> self = context.getSelf();
        CompletableFuture.allOf(answers.toArray(CompletableFuture[]::new)).whenComplete((all, failure) -> {
            List<Answer.Running> running = new ArrayList<>();
            for (CompletableFuture<Answer> answer : answers) {
                if (!answer.isCompletedExceptionally() && answer.join() instanceof Answer.Inspected inspected) {
                    running.addAll(inspected.running());
                }
            }
            boolean known = failure == null && answers.size() == state.trees().size();
            self.tell(new Continue(() -> then.apply(running, known)));
        });
    }

    private Effect<Event, State> describe(State state, Describe describe) {
        if (state.trees().isEmpty()) {
            return Effect().none().thenRun(() -> describe.replyTo.tell(described(state, "ended", List.of())));
        }
        if (state.operation() != null) {
            String what = state.operation().restart() ? "restarting" : "checkpointing";
            return Effect().none().thenRun(() -> describe.replyTo.tell(described(state, what, List.of())));
        }
        boolean reachable = state.trees().keySet().stream().allMatch(nodes::containsKey);
        ask(state, (alive, known) -> {
            if (alive.isEmpty() && known) {
                State before = stateNow;
                return endAnd("its processes ended", () -> {
                    describe.replyTo.tell(described(before, "ended", List.of()));
                    return nothing();
                });
            }
            describe.replyTo.tell(described(stateNow, reachable ? "running" : "host unreachable", alive));
            return nothing();
        });
        return nothing();
    }

    private Answer.Described described(State state, String what, List<Answer.Running> running) {
        return new Answer.Described(
                name,
                what,
                List.copyOf(state.trees().values()),
                running.stream().mapToInt(Answer.Running::processes).sum(),
                running.stream().mapToInt(Answer.Running::threads).sum(),
                state.directory(),
                state.intervalSeconds(),
                state.last());
    }

    private Effect<Event, State> kill(State state, Kill kill) {
        if (state.trees().isEmpty()) {
            return refuse(kill.replyTo, new Answer.Refused("no-such", 6, "computation " + name + " does not run"));
        }
        if (state.operation() != null) {
            return refuse(kill.replyTo, refusal("it is being checkpointed or restarted; try again when that is done"));
        }
        List<Integer> killed = new ArrayList<>();
        CompletableFuture<Void> all = CompletableFuture.completedFuture(null);
        for (Tree tree : state.trees().values()) {
            ActorRef<NodeAgent.Command> node = nodes.get(tree.host());
            if (node == null) {
                return refuse(kill.replyTo, refusal("the agent of host " + tree.host() + " cannot be reached"));
            }
            all = all.thenCombine(
                    akka.actor.typed.javadsl.AskPattern.<NodeAgent.Command, Answer>ask(
                            node,
                            replyTo -> new NodeAgent.Kill(tree, kill.graceMillis, replyTo),
                            Duration.ofMillis(kill.graceMillis + 15_000),
                            context.getSystem().scheduler()),
                    (nothing, answer) -> {
                        if (answer instanceof Answer.Killed(List<Integer> pids)) {
                            synchronized (killed) {
                                killed.addAll(pids);
                            }
                        }
                        return null;
                    });
        }
        ActorRef<Command> self = context.getSelf();
        all.whenComplete((done, failure) -> self.tell(new Continue(() -> {
            if (failure != null) {
                return refuse(kill.replyTo, Answer.Refused.of(failure));
            }
            return endAnd("killed", () -> {
                kill.replyTo.tell(new Answer.Killed(List.copyOf(killed)));
                return nothing();
            });
        })));
        return nothing();
    }

    /** Time for a checkpoint, unless the program has ended and nobody looked. */
    private Effect<Event, State> tick(State state) {
        if (state.trees().isEmpty()) {
            timers.cancel("interval");
            return nothing();
        }
        if (running != null || state.operation() != null) {
            return nothing();
        }
        ask(state, (alive, known) -> {
            if (alive.isEmpty() && known) {
                return endAnd("its processes ended", () -> {
                    arm(stateNow);
                    return nothing();
                });
            }
            context.getSelf()
                    .tell(new Checkpoint(
                            null, false, null, "interval", context.getSystem().ignoreRef()));
            return nothing();
        });
        return nothing();
    }

    // Checkpoint.

    private Effect<Event, State> checkpoint(State state, Checkpoint checkpoint) {
        String directory = checkpoint.directory == null ? state.directory() : checkpoint.directory;
        if (running != null) {
            queued.add(checkpoint);
            return nothing();
        }
        if (state.trees().isEmpty()) {
            return refuse(
                    checkpoint.replyTo, new Answer.Refused("no-such", 6, "computation " + name + " does not run"));
        }
        for (String host : state.trees().keySet()) {
            if (!nodes.containsKey(host)) {
                return refuse(checkpoint.replyTo, refusal("the agent of host " + host + " cannot be reached"));
            }
        }
        running = new Running(
                newOperation(),
                checkpoint.replyTo,
                checkpoint.kill,
                Set.copyOf(state.trees().keySet()));
        Running mine = running;
        mine.firstSequence = generations.lastSequence() + 1;
        String keyFile = checkpoint.keyFile == null ? state.keyFile() : checkpoint.keyFile;
        aside(
                () -> {
                    // A key that cannot be used is told before anything is frozen.
                    mine.key = keyFile == null ? null : SigningKey.read(Path.of(keyFile));
                    return generations.begin(Path.of(directory), mine.hosts);
                },
                (staging, failure) -> failure != null
                        ? failBeforeStart(Answer.Refused.of(failure))
                        : started(mine, staging, directory, checkpoint));
        return nothing();
    }

    /** The operation is over; the next one that was asked for meanwhile begins. */
    private void idle() {
        running = null;
        if (!queued.isEmpty()) {
            context.getSelf().tell(queued.poll());
        }
    }

    private String newOperation() {
        return name + "#" + System.currentTimeMillis() + "-" + ++operations;
    }

    private Effect<Event, State> failBeforeStart(Answer.Refused why) {
        ActorRef<Answer> client = running.client;
        idle();
        return refuse(client, why);
    }

    private Effect<Event, State> started(Running mine, Staging staging, String directory, Checkpoint checkpoint) {
        mine.staging = staging;
        mine.generation = staging.number();
        var command = new ComputationLifecycle.Command.StartCheckpoint(
                mine.id, staging.number(), directory, mine.kill, checkpoint.cause);
        return switch (ComputationLifecycle.decide(stateNow, command)) {
            case Decision.Accepted<Event>(List<Event> events) ->
                Effect().persist(events).thenRun((State now) -> {
                    mine.waitingFor.addAll(mine.hosts);
                    now.trees()
                            .forEach((host, tree) -> nodes.get(host)
                                    .tell(new NodeAgent.OpenCheckpoint(
                                            mine.id,
                                            tree,
                                            staging.path().resolve(host).toString(),
                                            fromNodes)));
                });
            case Decision.Rejected<Event>(String reason) -> {
                staging.close();
                yield failBeforeStart(refusal(reason));
            }
        };
    }

    private Effect<Event, State> fromNode(Answer answer) {
        if (running == null) {
            return nothing();
        }
        return switch (answer) {
            case Answer.Opened a when a.operation().equals(running.id) -> opened(a);
            case Answer.PhaseDone a when a.operation().equals(running.id) -> phaseDone(a);
            case Answer.PhaseFailed a when a.operation().equals(running.id) -> phaseFailed(a);
            case Answer.Abandoned a when a.operation().equals(running.id) -> abandoned(a);
            default -> nothing();
        };
    }

    private Effect<Event, State> opened(Answer.Opened opened) {
        running.waitingFor.remove(opened.host());
        if (!running.waitingFor.isEmpty() || running.abandoning) {
            return nothing();
        }
        if (running.failure != null) {
            return abandon();
        }
        if (opened.stub() != null && running.restartClient == null) {
            ActorRef<Answer> client = running.client;
            client.tell(new Answer.Prepared(name, running.id, opened.stub(), opened.pty()));
            return nothing();
        }
        return startPhase(running.restartClient == null ? Phase.SUSPEND : Phase.CREATE, List.of());
    }

    private Effect<Event, State> startPhase(Phase phase, List<Event> before) {
        Running mine = running;
        List<Event> events = new ArrayList<>(before);
        events.add(new Event.PhaseStarted(phase));
        return Effect().persist(events).thenRun(() -> {
            mine.phase = phase;
            mine.phaseStartedNanos = System.nanoTime();
            if (phase == Phase.SUSPEND) {
                mine.suspendStartedNanos = mine.phaseStartedNanos;
            }
            mine.done.clear();
            mine.waitingFor.addAll(mine.hosts);
            for (String host : mine.hosts) {
                nodes.get(host).tell(new NodeAgent.RunPhase(mine.id, phase, fromNodes));
            }
        });
    }

    private Effect<Event, State> phaseDone(Answer.PhaseDone done) {
        Running mine = running;
        mine.waitingFor.remove(done.host());
        mine.done.add(done);
        if (done.phase() == Phase.WRITE) {
            mine.written.put(done.host(), done);
        }
        mine.pausedNanos = Math.max(mine.pausedNanos, done.pausedNanos());
        if (!mine.waitingFor.isEmpty()) {
            return nothing();
        }
        if (mine.failure != null) {
            return abandon();
        }
        List<Event> finished =
                List.of(new Event.PhaseFinished(done.phase(), System.nanoTime() - mine.phaseStartedNanos));
        return switch (done.phase()) {
            case SUSPEND -> startPhase(Phase.DRAIN, finished);
            case DRAIN -> startPhase(Phase.WRITE, finished);
            case WRITE -> startPhase(Phase.REFILL, finished);
            // Nothing is killed before its image is safe.
            case REFILL ->
                mine.kill ? Effect().persist(finished).thenRun(this::commit) : startPhase(Phase.RESUME, finished);
            case RESUME -> Effect().persist(finished).thenRun(this::commit);
            case TERMINATE ->
                Effect()
                        .persist(finished)
                        .thenRun(() -> context.getSelf().tell(new Continue(() -> finishCheckpoint(mine))));
            case CREATE -> startPhase(Phase.REBUILD, finished);
            case REBUILD -> startPhase(Phase.REPLENISH, finished);
            case REPLENISH -> startPhase(Phase.RELEASE, finished);
            case RELEASE -> restarted(finished);
        };
    }

    private void commit() {
        Running mine = running;
        State state = stateNow;
        if (mine.kill) {
            mine.pausedNanos = System.nanoTime() - mine.suspendStartedNanos;
        }
        aside(
                () -> generations.commit(
                        mine.staging,
                        name,
                        state.trees(),
                        mine.written,
                        mine.firstSequence,
                        mine.pausedNanos,
                        Map.of("kill", Boolean.toString(mine.kill)),
                        mine.key),
                (path, failure) -> failure != null ? commitFailed(failure) : committed(mine, path));
    }

    /** The programs run (or have ended) already; only the generation is lost. */
    private Effect<Event, State> commitFailed(Throwable failure) {
        running.failure = Answer.Refused.of(failure);
        return abandon();
    }

    private Effect<Event, State> committed(Running mine, Generations.Committed committed) {
        mine.committed = committed;
        return mine.kill ? startPhase(Phase.TERMINATE, List.of()) : finishCheckpoint(mine);
    }

    private Effect<Event, State> finishCheckpoint(Running mine) {
        Generations.Committed committed = mine.committed;
        int processes = mine.written.values().stream()
                .mapToInt(Answer.PhaseDone::processes)
                .sum();
        Generation generation = new Generation(
                mine.generation,
                committed.path(),
                processes,
                mine.done.stream().mapToInt(Answer.PhaseDone::threads).sum(),
                mine.pausedNanos,
                System.nanoTime() - mine.startedNanos,
                committed.bytes());
        String directory = Path.of(committed.path()).getParent().toString();
        idle();
        for (String host : mine.hosts) {
            nodes.get(host)
                    .tell(new NodeAgent.Abandon(
                            mine.id, "finished", context.getSystem().ignoreRef()));
        }
        return switch (ComputationLifecycle.decide(stateNow, new ComputationLifecycle.Command.Commit(generation))) {
            case Decision.Accepted<Event>(List<Event> events) ->
                Effect().persist(events).thenRun((State now) -> {
                    arm(now);
                    mine.client.tell(new Answer.Checkpointed(name, directory, generation));
                });
            case Decision.Rejected<Event>(String reason) -> refuse(mine.client, refusal(reason));
        };
    }

    private Effect<Event, State> phaseFailed(Answer.PhaseFailed failed) {
        running.waitingFor.remove(failed.host());
        if (running.failure == null) {
            running.failure = failed.why();
        }
        return running.waitingFor.isEmpty() && !running.abandoning ? abandon() : nothing();
    }

    /** Everybody lets go; then the client hears why. */
    private Effect<Event, State> abandon() {
        Running mine = running;
        mine.abandoning = true;
        mine.waitingFor.addAll(mine.hosts);
        return Effect().none().thenRun(() -> {
            for (String host : mine.hosts) {
                nodes.get(host).tell(new NodeAgent.Abandon(mine.id, mine.failure.message(), fromNodes));
            }
        });
    }

    private Effect<Event, State> abandoned(Answer.Abandoned abandoned) {
        Running mine = running;
        mine.waitingFor.remove(abandoned.host());
        if (!mine.abandoning || !mine.waitingFor.isEmpty()) {
            return nothing();
        }
        if (mine.staging != null) {
            mine.staging.close();
        }
        idle();
        ActorRef<Answer> client = mine.restartClient != null ? mine.restartClient : mine.client;
        return switch (ComputationLifecycle.decide(
                stateNow, new ComputationLifecycle.Command.Abort(mine.failure.message()))) {
            case Decision.Accepted<Event>(List<Event> events) ->
                Effect().persist(events).thenRun(() -> client.tell(mine.failure));
            case Decision.Rejected<Event> rejected -> refuse(client, mine.failure);
        };
    }

    // Restart.

    private Effect<Event, State> prepareRestart(State state, PrepareRestart prepare) {
        if (running != null) {
            queued.add(prepare);
            return nothing();
        }
        if (!nodes.containsKey(prepare.host)) {
            return refuse(prepare.replyTo, refusal("the agent of host " + prepare.host + " cannot be reached"));
        }
        Running mine = new Running(newOperation(), prepare.replyTo, false, Set.of(prepare.host));
        running = mine;
        ask(state, (alive, known) -> {
            if (!alive.isEmpty()) {
                return failBeforeStart(new Answer.Refused(
                        "pid-taken",
                        7,
                        "computation " + name + ": it runs already, as process "
                                + alive.getFirst().tree().root() + "; end it first with `stasis kill " + name
                                + "`"));
            }
            return endAnd("its processes ended", () -> {
                verifyImage(mine, prepare);
                return nothing();
            });
        });
        return nothing();
    }

    private void verifyImage(Running mine, PrepareRestart prepare) {
        aside(
                () -> generations.verify(
                        Path.of(prepare.directory), prepare.generation, prepare.host, prepare.requiredKey),
                (image, failure) -> failure != null
                        ? failBeforeStart(Answer.Refused.of(failure))
                        : startRestart(mine, prepare, image));
    }

    private Effect<Event, State> startRestart(Running mine, PrepareRestart prepare, Generations.Verified image) {
        mine.generation = image.number();
        mine.cookie = image.cookie();
        var command = new ComputationLifecycle.Command.StartRestart(
                mine.id, image.number(), prepare.directory, image.logHead(), prepare.cause);
        return switch (ComputationLifecycle.decide(stateNow, command)) {
            case Decision.Accepted<Event>(List<Event> events) ->
                Effect().persist(events).thenRun(() -> {
                    mine.waitingFor.add(prepare.host);
                    nodes.get(prepare.host)
                            .tell(new NodeAgent.OpenRestore(
                                    mine.id, image.path(), image.host(), prepare.options, fromNodes));
                });
            case Decision.Rejected<Event>(String reason) -> failBeforeStart(refusal(reason));
        };
    }

    private Effect<Event, State> finishRestart(FinishRestart finish) {
        if (running == null || !running.id.equals(finish.operation)) {
            return refuse(finish.replyTo, refusal("no restart " + finish.operation + " is under way"));
        }
        running.restartClient = finish.replyTo;
        running.waitingFor.addAll(running.hosts);
        for (String host : running.hosts) {
            nodes.get(host).tell(new NodeAgent.Adopt(running.id, finish.stub, fromNodes));
        }
        return nothing();
    }

    private Effect<Event, State> cancel(CancelRestart cancel) {
        if (running == null || !running.id.equals(cancel.operation) || running.abandoning) {
            return nothing();
        }
        running.failure = new Answer.Refused("failed", 1, "the restart command ended before the restart did");
        return running.waitingFor.isEmpty() ? abandon() : nothing();
    }

    private Effect<Event, State> restarted(List<Event> finished) {
        Running mine = running;
        idle();
        Answer.PhaseDone done = mine.done.getFirst();
        Tree bare = done.tree();
        Tree tree = new Tree(bare.host(), bare.root(), bare.startTime(), mine.cookie, bare.command());
        List<Event> events = new ArrayList<>(finished);
        if (ComputationLifecycle.decide(stateNow, new ComputationLifecycle.Command.FinishRestart(List.of(tree)))
                instanceof Decision.Accepted<Event>(List<Event> accepted)) {
            events.addAll(accepted);
        }
        Answer.Restarted facts = done.restarted();
        return Effect().persist(events).thenRun((State now) -> {
            arm(now);
            for (String host : mine.hosts) {
                nodes.get(host)
                        .tell(new NodeAgent.Abandon(
                                mine.id, "finished", context.getSystem().ignoreRef()));
            }
            mine.restartClient.tell(new Answer.Restarted(
                    name,
                    mine.generation,
                    facts.root(),
                    facts.pids(),
                    facts.foregroundGroup(),
                    facts.terminalSettings(),
                    System.nanoTime() - mine.startedNanos));
        });
    }
}
