package io.stasis.engine.lifecycle;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A computation: trees of processes, on one host or several, that are checkpointed together into one image directory.
 */
public final class ComputationLifecycle {
    /**
     * One host's tree.
     *
     * @param root pid of its root
     * @param startTime its start time, clock ticks after boot
     * @param cookie value of STASIS_COOKIE in its environment, null when it was not launched by Stasis
     * @param command command line
     */
    public record Tree(String host, int root, long startTime, String cookie, List<String> command) {}

    /**
     * A finished checkpoint.
     *
     * @param path directory of the generation
     * @param pauseNanos longest time a process stood still
     * @param totalNanos from the request to the commit
     */
    public record Generation(
            int number, String path, int processes, int threads, long pauseNanos, long totalNanos, long bytes) {}

    public sealed interface Command {
        record Register(Tree tree, String directory, int intervalSeconds) implements Command {}

        record StartCheckpoint(String operation, int generation, String directory, boolean kill, String cause)
                implements Command {}

        record StartRestart(String operation, int generation, String directory, String logHead, String cause)
                implements Command {}

        record StartPhase(Phase phase) implements Command {}

        record FinishPhase(Phase phase, long nanos) implements Command {}

        record Commit(Generation generation) implements Command {}

        record FinishRestart(List<Tree> trees) implements Command {}

        record Abort(String reason) implements Command {}

        record End(String reason) implements Command {}

        /** @param file of the key that all generations from now on are signed with */
        record ChooseKey(String file) implements Command {}
    }

    public sealed interface Event {
        record Registered(Tree tree, String directory, int intervalSeconds) implements Event {}

        record CheckpointStarted(String operation, int generation, String directory, boolean kill, String cause)
                implements Event {}

        /** @param logHead hash of the last event of the image's history, which this one continues */
        record RestartStarted(String operation, int generation, String directory, String logHead, String cause)
                implements Event {}

        record PhaseStarted(Phase phase) implements Event {}

        record PhaseFinished(Phase phase, long nanos) implements Event {}

        record Committed(Generation generation) implements Event {}

        record Restarted(List<Tree> trees) implements Event {}

        record Aborted(String operation, String reason) implements Event {}

        record Ended(String reason) implements Event {}

        record KeyChosen(String file) implements Event {}
    }

    /** What is being done. */
    public record Operation(String id, boolean restart, int generation, String directory, boolean kill, Phase phase) {}

    /**
     * @param trees by host; empty when nothing runs
     * @param operation null when there is none
     * @param last null before the first checkpoint
     * @param keyFile of the key that generations are signed with, null for none
     */
    public record State(
            Map<String, Tree> trees,
            String directory,
            int intervalSeconds,
            Operation operation,
            Generation last,
            String keyFile) {}

    private ComputationLifecycle() {}

    public static State initial() {
        return new State(Map.of(), null, 0, null, null, null);
    }

    public static Decision<Event> decide(State state, Command command) {
        return switch (command) {
            case Command.Register(Tree tree, String directory, int interval) ->
                state.trees.containsKey(tree.host)
                        ? Decision.reject("it runs on " + tree.host + " already, with root process "
                                + state.trees.get(tree.host).root)
                        : state.operation != null
                                ? Decision.reject("it is busy with a " + kind(state.operation))
                                : Decision.accept(new Event.Registered(tree, directory, interval));
            case Command.StartCheckpoint(String id, int generation, String directory, boolean kill, String cause) ->
                state.trees.isEmpty()
                        ? Decision.reject("it does not run")
                        : state.operation != null
                                ? Decision.reject("it is busy with a " + kind(state.operation))
                                : Decision.accept(new Event.CheckpointStarted(id, generation, directory, kill, cause));
            case Command.StartRestart(String id, int generation, String directory, String head, String cause) ->
                !state.trees.isEmpty()
                        ? Decision.reject("it runs already; end it first with `stasis kill`")
                        : state.operation != null
                                ? Decision.reject("it is busy with a " + kind(state.operation))
                                : Decision.accept(new Event.RestartStarted(id, generation, directory, head, cause));
            case Command.StartPhase(Phase phase) ->
                state.operation == null || state.operation.restart != phase.isRestart()
                        ? Decision.reject("phase " + phase + " belongs to no operation under way")
                        : Decision.accept(new Event.PhaseStarted(phase));
            case Command.FinishPhase(Phase phase, long nanos) ->
                state.operation == null || state.operation.phase != phase
                        ? Decision.reject("phase " + phase + " was not started")
                        : Decision.accept(new Event.PhaseFinished(phase, nanos));
            case Command.Commit(Generation generation) ->
                state.operation == null || state.operation.restart
                        ? Decision.reject("no checkpoint is under way")
                        : state.operation.kill
                                ? Decision.accept(
                                        new Event.Committed(generation), new Event.Ended("killed after its checkpoint"))
                                : Decision.accept(new Event.Committed(generation));
            case Command.FinishRestart(List<Tree> trees) ->
                state.operation == null || !state.operation.restart
                        ? Decision.reject("no restart is under way")
                        : Decision.accept(new Event.Restarted(trees));
            case Command.Abort(String reason) ->
                state.operation == null
                        ? Decision.accept()
                        : Decision.accept(new Event.Aborted(state.operation.id, reason));
            case Command.End(String reason) ->
                state.trees.isEmpty() || state.operation != null
                        ? Decision.accept()
                        : Decision.accept(new Event.Ended(reason));
            case Command.ChooseKey(String file) -> Decision.accept(new Event.KeyChosen(file));
        };
    }

    private static String kind(Operation operation) {
        return operation.restart ? "restart" : "checkpoint";
    }

    public static State evolve(State s, Event event) {
        return switch (event) {
            case Event.Registered(Tree tree, String directory, int interval) -> {
                Map<String, Tree> trees = new TreeMap<>(s.trees);
                trees.put(tree.host, tree);
                yield new State(Map.copyOf(trees), directory, interval, s.operation, s.last, s.keyFile);
            }
            case Event.CheckpointStarted(String id, int generation, String directory, boolean kill, String cause) ->
                with(s, new Operation(id, false, generation, directory, kill, null));
            case Event.RestartStarted(String id, int generation, String directory, String head, String cause) ->
                new State(
                        s.trees,
                        directory,
                        s.intervalSeconds,
                        new Operation(id, true, generation, directory, false, null),
                        s.last,
                        s.keyFile);
            case Event.PhaseStarted(Phase phase) -> with(s, inPhase(s.operation, phase));
            case Event.PhaseFinished e -> s;
            case Event.Committed(Generation generation) ->
                new State(s.trees, s.directory, s.intervalSeconds, null, generation, s.keyFile);
            case Event.Restarted(List<Tree> trees) -> {
                Map<String, Tree> byHost = new TreeMap<>();
                trees.forEach(tree -> byHost.put(tree.host, tree));
                yield new State(Map.copyOf(byHost), s.directory, s.intervalSeconds, null, s.last, s.keyFile);
            }
            case Event.Aborted e -> with(s, null);
            case Event.Ended e -> new State(Map.of(), s.directory, s.intervalSeconds, s.operation, s.last, s.keyFile);
            case Event.KeyChosen(String file) ->
                new State(s.trees, s.directory, s.intervalSeconds, s.operation, s.last, file);
        };
    }

    private static State with(State s, Operation operation) {
        return new State(s.trees, s.directory, s.intervalSeconds, operation, s.last, s.keyFile);
    }

    /** Of a log that begins in the middle of an operation, which is therefore not known. */
    private static Operation inPhase(Operation o, Phase phase) {
        return o == null ? null : new Operation(o.id, o.restart, o.generation, o.directory, o.kill, phase);
    }
}
