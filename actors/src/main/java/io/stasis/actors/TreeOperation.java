package io.stasis.actors;

import akka.actor.typed.ActorRef;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import io.stasis.engine.CheckpointRequest;
import io.stasis.engine.CheckpointSession;
import io.stasis.engine.Engine;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.RestoreRequest;
import io.stasis.engine.RestoreSession;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * One checkpoint or restart of one tree on one host: a session of the engine, its tracer thread, and a {@link
 * ProcessActor} for each process. Belongs to its node agent and runs in it; the native work runs on the tracer thread.
 */
final class TreeOperation {
    private final ActorContext<NodeAgent.Command> context;
    private final String host;
    private final String id;
    private final TracerThread tracer = new TracerThread();
    private final ActorRef<ProcessActor.Report> reports;
    private final Map<ProcessKey, ActorRef<ProcessActor.Command>> processes = new LinkedHashMap<>();
    private final Set<ProcessKey> waitingFor = new LinkedHashSet<>();
    private final List<Outcome> outcomes = new ArrayList<>();
    private final Map<ProcessKey, Outcome.Suspended> suspended = new HashMap<>();
    private final List<Outcome.Connection> connections = new ArrayList<>();
    private CheckpointSession checkpoint;
    private RestoreSession restore;
    private Engine engine;
    private boolean detached;
    private int spawnedStub;
    private Phase phase;
    private Answer.Refused failure;
    private ActorRef<Answer> replyTo;
    private List<ProcessKey> order = List.of();
    private final Map<ProcessKey, Runnable> asked = new HashMap<>();
    private CompletableFuture<List<Outcome.Released>> released;
    private int releaseAsked;
    private int recording;

    TreeOperation(ActorContext<NodeAgent.Command> context, String host, String id) {
        this.context = context;
        this.host = host;
        this.id = id;
        // Not a message adapter: a context has one for each class, and would bring all reports to the newest operation.
        ActorRef<NodeAgent.Command> self = context.getSelf();
        this.reports = context.spawnAnonymous(Behaviors.receiveMessage(report -> {
            self.tell(new NodeAgent.FromProcess(id, report));
            return Behaviors.same();
        }));
    }

    /** Does native work on the tracer thread and goes on in the actor. */
    private <T> void onTracer(Supplier<T> work, Consumer<T> then) {
        ActorRef<NodeAgent.Command> self = context.getSelf();
        tracer.run(work)
                .whenComplete((result, problem) -> self.tell(new NodeAgent.Continue(id, () -> {
                    if (problem == null) {
                        then.accept(result);
                    } else {
                        replyTo.tell(new Answer.PhaseFailed(id, host, Answer.Refused.of(problem)));
                    }
                })));
    }

    void openCheckpoint(Engine theEngine, CheckpointRequest request, ActorRef<Answer> sender) {
        replyTo = sender;
        engine = theEngine;
        onTracer(
                () -> {
                    checkpoint = engine.checkpoint(request);
                    return checkpoint.discover();
                },
                keys -> {
                    keys.forEach(this::spawn);
                    replyTo.tell(new Answer.Opened(id, host, keys.size(), null, false));
                });
    }

    void openRestore(Engine theEngine, RestoreRequest request, ActorRef<Answer> sender) {
        replyTo = sender;
        engine = theEngine;
        detached = request.options().detached();
        onTracer(
                () -> {
                    restore = engine.restore(request);
                    List<Engine.Problem> problems = restore.verify();
                    if (!problems.isEmpty()) {
                        throw problem(problems);
                    }
                    return restore.stub().toString();
                },
                stub -> {
                    restore.processes().forEach(this::spawn);
                    replyTo.tell(new Answer.Opened(id, host, processes.size(), stub, restore.needsPty()));
                });
    }

    private static RuntimeException problem(List<Engine.Problem> problems) {
        String all = String.join(
                "; and ", problems.stream().map(Engine.Problem::sentence).toList());
        boolean pids = problems.stream()
                .allMatch(p -> p.resource().equals("its pid") && p.reason().contains("taken"));
        boolean access = problems.stream().anyMatch(p -> p.reason().startsWith("this user"));
        var kind = pids
                ? io.stasis.engine.EngineException.Kind.PID_TAKEN
                : access ? io.stasis.engine.EngineException.Kind.ACCESS : io.stasis.engine.EngineException.Kind.IMAGE;
        return new io.stasis.engine.EngineException(kind, "cannot restart: " + all);
    }

    void adopt(int stub, ActorRef<Answer> sender) {
        replyTo = sender;
        onTracer(
                () -> {
                    spawnedStub = stub == 0 ? restore.spawn() : 0;
                    restore.adopt(stub == 0 ? spawnedStub : stub);
                    return true;
                },
                done -> replyTo.tell(new Answer.Opened(id, host, processes.size(), null, false)));
    }

    private void spawn(ProcessKey key) {
        processes.computeIfAbsent(key, k -> context.spawnAnonymous(ProcessActor.create(k, step -> work(k, step))));
    }

    /** The native work of one phase for one process. */
    private CompletionStage<? extends Outcome> work(ProcessKey key, Phase step) {
        return switch (step) {
            case SUSPEND -> inOrder(key, () -> checkpoint.suspend(key));
            case DRAIN -> inOrder(key, () -> checkpoint.drain(key));
            case WRITE -> inOrder(key, () -> checkpoint.write(key));
            case REFILL -> inOrder(key, () -> checkpoint.refill(key));
            case RESUME -> inOrder(key, () -> checkpoint.resume(key));
            case TERMINATE -> inOrder(key, () -> checkpoint.terminate(key));
            case CREATE -> inOrder(key, () -> restore.create(key));
            case REBUILD -> inOrder(key, () -> restore.rebuild(key));
            case REPLENISH -> inOrder(key, () -> restore.refill(key));
            case RELEASE -> release(key);
        };
    }

    /**
     * Does the work of all processes one after the other, in the order of {@link #order}, when the intents of all are in
     * the log. A parent is frozen before its children and runs again after them: it never sees one that stands still.
     */
    private synchronized CompletionStage<Outcome> inOrder(ProcessKey key, Supplier<Outcome> step) {
        CompletableFuture<Outcome> result = new CompletableFuture<>();
        asked.put(key, () -> {
            try {
                result.complete(step.get());
            } catch (RuntimeException e) {
                result.completeExceptionally(e);
            }
        });
        if (asked.size() == order.size()) {
            List<Runnable> steps = order.stream().map(asked::get).toList();
            asked.clear();
            tracer.run(() -> {
                steps.forEach(Runnable::run);
                return true;
            });
        }
        return result;
    }

    /** All processes are let go at once, when the intent of each is in the log. */
    private synchronized CompletionStage<Outcome> release(ProcessKey key) {
        if (++releaseAsked == processes.size()) {
            tracer.run(restore::release).whenComplete((outcome, problem) -> {
                if (problem == null) {
                    released.complete(outcome);
                } else {
                    released.completeExceptionally(problem);
                }
            });
        }
        return released.thenApply(all -> all.stream()
                .filter(outcome -> outcome.process().pid() == key.pid())
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("process " + key.pid() + " was not released")));
    }

    void run(Phase next, ActorRef<Answer> sender) {
        replyTo = sender;
        phase = next;
        failure = null;
        outcomes.clear();
        if (next == Phase.RELEASE) {
            synchronized (this) {
                released = new CompletableFuture<>();
                releaseAsked = 0;
            }
        }
        List<ProcessKey> keys = List.copyOf(processes.keySet());
        // Children first: a parent must not see a child that still stands still.
        begin(next == Phase.RESUME || next == Phase.TERMINATE ? keys.reversed() : keys);
    }

    private void begin(List<ProcessKey> keys) {
        waitingFor.addAll(keys);
        synchronized (this) {
            order = keys;
            asked.clear();
        }
        for (ProcessKey key : keys) {
            processes.get(key).tell(new ProcessActor.Begin(phase, id, reports));
        }
        if (keys.isEmpty()) {
            allReported();
        }
    }

    void reported(ProcessActor.Report report) {
        switch (report) {
            case ProcessActor.Completed(ProcessKey key, Outcome outcome) -> {
                outcomes.add(outcome);
                remember(key, outcome);
                finished(key);
            }
            case ProcessActor.Broken(ProcessKey key, Answer.Refused why) -> {
                if (failure == null) {
                    failure = why;
                }
                finished(key);
            }
            case ProcessActor.LetGo letGo -> {}
        }
    }

    private void remember(ProcessKey key, Outcome outcome) {
        switch (outcome) {
            case Outcome.Suspended o -> {
                if (o.threads().isEmpty()) {
                    processes.remove(key); // it had ended
                } else {
                    suspended.put(key, o);
                }
            }
            case Outcome.Drained o -> connections.addAll(o.connections());
            default -> {}
        }
    }

    private void finished(ProcessKey key) {
        waitingFor.remove(key);
        if (waitingFor.isEmpty()) {
            allReported();
        }
    }

    private void allReported() {
        if (failure != null) {
            replyTo.tell(new Answer.PhaseFailed(id, host, failure));
            return;
        }
        switch (phase) {
            case SUSPEND ->
                onTracer(() -> checkpoint.unsuspended(), born -> {
                    born.forEach(this::spawn);
                    if (born.isEmpty()) {
                        phaseDone(null, null, null);
                    } else {
                        begin(born);
                    }
                });
            case WRITE -> onTracer(() -> checkpoint.finishImage(), finished -> phaseDone(finished, null, null));
            case RESUME, TERMINATE -> recordThreads();
            case RELEASE -> restarted();
            default -> phaseDone(null, null, null);
        }
    }

    private void phaseDone(Outcome.Finished finished, Answer.Restarted restarted, Tree tree) {
        int threads =
                suspended.values().stream().mapToInt(o -> o.threads().size()).sum();
        long bytes = 0;
        long paused = 0;
        for (Outcome outcome : outcomes) {
            switch (outcome) {
                case Outcome.Written o -> bytes += o.bytes();
                case Outcome.Rebuilt o -> bytes += o.bytes();
                case Outcome.Resumed o -> paused = Math.max(paused, o.pausedNanos());
                default -> {}
            }
        }
        replyTo.tell(new Answer.PhaseDone(
                id, host, phase, processes.size(), threads, bytes, paused, finished, restarted, tree));
    }

    /** Threads and connections log what happened to them, now that nothing stands still any more. */
    private void recordThreads() {
        boolean killed = phase == Phase.TERMINATE;
        suspended.forEach((key, outcome) -> {
            for (Outcome.StoppedThread thread : outcome.threads()) {
                List<ThreadLifecycle.Command> commands = List.of(
                        new ThreadLifecycle.Command.Suspend(thread.name(), thread.at(), thread.waitNanos(), id),
                        killed ? new ThreadLifecycle.Command.End(id) : new ThreadLifecycle.Command.Resume(id));
                recording++;
                context.spawnAnonymous(ThreadActor.create(key, thread.tid()))
                        .tell(new ThreadActor.Record(commands, context.getSelf(), id));
            }
        });
        for (Outcome.Connection connection : connections) {
            List<ConnectionLifecycle.Command> commands = List.of(
                    new ConnectionLifecycle.Command.Drain(connection, id),
                    new ConnectionLifecycle.Command.Refill(connection, id));
            recording++;
            context.spawnAnonymous(ConnectionActor.create(host, connection.id()))
                    .tell(new ConnectionActor.Record(commands, context.getSelf(), id));
        }
        if (recording == 0) {
            phaseDone(null, null, null);
        }
    }

    void recorded() {
        if (--recording == 0) {
            phaseDone(null, null, null);
        }
    }

    private void restarted() {
        ProcessKey key = restore.root();
        int root = key.pid();
        if (detached) {
            Engine reaper = engine;
            Thread.ofPlatform().daemon().name("reaper-" + root).start(() -> reaper.reap(root));
        }
        var facts = new Answer.Restarted(
                null, 0, root, restore.pids(), restore.foregroundGroup(), restore.terminalSettings(), 0);
        phaseDone(null, facts, new Tree(host, root, key.startTime(), null, List.of()));
    }

    /** Closes the session: what is still frozen runs on, what was half restored is taken away. */
    void abandon(String reason, ActorRef<Answer> sender) {
        replyTo = sender;
        CompletionStage<Boolean> closed = tracer.run(() -> {
            if (checkpoint != null) {
                checkpoint.close();
            }
            if (restore != null) {
                restore.close();
            }
            return true;
        });
        ActorRef<NodeAgent.Command> self = context.getSelf();
        closed.whenComplete((done, problem) -> self.tell(new NodeAgent.Continue(id, () -> {
            if (problem != null) {
                context.getLog().error("closing operation {}", id, problem);
            }
            tracer.close();
            context.stop(reports);
            waitingFor.clear();
            processes
                    .values()
                    .forEach(process -> process.tell(
                            new ProcessActor.Abandon(reason, context.getSystem().ignoreRef())));
            sender.tell(new Answer.Abandoned(id, host));
        })));
    }
}
