package io.stasis.actors;

import io.stasis.engine.CheckpointRequest;
import io.stasis.engine.CheckpointSession;
import io.stasis.engine.Engine;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.RestoreRequest;
import io.stasis.engine.RestoreSession;
import io.stasis.engine.lifecycle.Phase;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;

/** An engine without a kernel: a parent and a child that is born during the suspension. */
final class FakeEngine implements Engine {
    static final int PARENT = 100;
    static final int CHILD = 101;

    /** What was asked of it, in order. */
    final List<String> calls = new CopyOnWriteArrayList<>();
    /** The phase that fails, or null. */
    volatile Phase failing;
    /** Whether the tree runs. */
    volatile boolean running = true;

    private static ProcessKey key(int pid) {
        return new ProcessKey("host", pid, 7);
    }

    private void step(Phase phase, ProcessKey process) {
        calls.add(phase + " " + process.pid());
        if (failing == phase) {
            throw new EngineException(EngineException.Kind.FAILED, phase + " does not work");
        }
    }

    @Override
    public CheckpointSession checkpoint(CheckpointRequest request) {
        return new FakeCheckpoint(request);
    }

    @Override
    public RestoreSession restore(RestoreRequest request) {
        return new FakeRestore(request);
    }

    @Override
    public List<Problem> survey(CheckpointRequest request) {
        return List.of();
    }

    @Override
    public Optional<TreeStatus> status(CheckpointRequest request, long startTime) {
        return running ? Optional.of(new TreeStatus(2, 3, 7, "fake", List.of("/bin/fake", "x"))) : Optional.empty();
    }

    @Override
    public List<Integer> kill(CheckpointRequest request, long graceMillis) {
        running = false;
        return List.of(PARENT, CHILD);
    }

    @Override
    public void reap(int pid) {
        calls.add("reap " + pid);
    }

    @Override
    public List<HostCapability> capabilities() {
        return List.of();
    }

    @Override
    public void warmUp() {
        calls.add("warm up");
    }

    private final class FakeCheckpoint implements CheckpointSession {
        private final CheckpointRequest request;
        private boolean childSeen;

        FakeCheckpoint(CheckpointRequest request) {
            this.request = request;
        }

        @Override
        public List<ProcessKey> discover() {
            return List.of(key(PARENT));
        }

        @Override
        public Outcome.Suspended suspend(ProcessKey process) {
            step(Phase.SUSPEND, process);
            var at = new Outcome.StopPoint(1, 0, "in read");
            var threads = List.of(new Outcome.StoppedThread(process.pid(), "main", at, 5));
            return new Outcome.Suspended(process, threads, List.of(), 1, 2);
        }

        @Override
        public List<ProcessKey> unsuspended() {
            if (childSeen) {
                return List.of();
            }
            childSeen = true;
            return List.of(key(CHILD));
        }

        @Override
        public List<ProcessKey> processes() {
            return List.of(key(PARENT), key(CHILD));
        }

        @Override
        public Outcome.Drained drain(ProcessKey process) {
            step(Phase.DRAIN, process);
            var pipes = process.pid() == PARENT
                    ? List.of(new Outcome.Connection("pipe:[5]", "pipe", 3, List.of(PARENT, CHILD)))
                    : List.<Outcome.Connection>of();
            return new Outcome.Drained(process, 3, pipes, 2, 3);
        }

        @Override
        public Outcome.Written write(ProcessKey process) {
            step(Phase.WRITE, process);
            return new Outcome.Written(process, 1, 0, 4096, 3, 4);
        }

        @Override
        public Outcome.Finished finishImage() {
            try {
                Files.write(request.directory().resolve("tree.record"), new byte[0]);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return new Outcome.Finished(
                    key(PARENT),
                    List.of(new Outcome.ImageFile(request.prefix() + "/tree.record", 0, 0)),
                    List.of(new Outcome.ProcessSummary(PARENT, 1, "fake", List.of("/bin/fake"), 1, 4096, 4096, 0)),
                    4,
                    5);
        }

        @Override
        public Outcome.Refilled refill(ProcessKey process) {
            step(Phase.REFILL, process);
            return new Outcome.Refilled(process, List.of(), 5, 6);
        }

        @Override
        public Outcome.Resumed resume(ProcessKey process) {
            step(Phase.RESUME, process);
            return new Outcome.Resumed(process, 1, 5, 6, 7);
        }

        @Override
        public Outcome.Resumed terminate(ProcessKey process) {
            step(Phase.TERMINATE, process);
            running = false;
            return new Outcome.Resumed(process, 1, 5, 6, 7);
        }

        @Override
        public void close() {
            calls.add("close");
        }
    }

    private final class FakeRestore implements RestoreSession {
        private final RestoreRequest request;

        FakeRestore(RestoreRequest request) {
            this.request = request;
        }

        @Override
        public List<Problem> verify() {
            return List.of();
        }

        @Override
        public Path stub() {
            return request.workDirectory().resolve("stub");
        }

        @Override
        public boolean needsPty() {
            return false;
        }

        @Override
        public int spawn() {
            return 99;
        }

        @Override
        public void adopt(int stubPid) {
            calls.add("adopt " + stubPid);
        }

        @Override
        public List<ProcessKey> processes() {
            return List.of(key(PARENT), key(CHILD));
        }

        @Override
        public Outcome.Created create(ProcessKey process) {
            step(Phase.CREATE, process);
            return new Outcome.Created(process, 1, 1, 2);
        }

        @Override
        public Outcome.Rebuilt rebuild(ProcessKey process) {
            step(Phase.REBUILD, process);
            return new Outcome.Rebuilt(process, 1, 2, 3, 4096, 2, 3);
        }

        @Override
        public Outcome.Refilled refill(ProcessKey process) {
            step(Phase.REPLENISH, process);
            return new Outcome.Refilled(process, List.of(), 3, 4);
        }

        @Override
        public List<Outcome.Released> release() {
            List<Outcome.Released> released = new ArrayList<>();
            for (ProcessKey process : processes()) {
                step(Phase.RELEASE, process);
                released.add(new Outcome.Released(process, 4, 5));
            }
            running = true;
            return released;
        }

        @Override
        public ProcessKey root() {
            return key(PARENT);
        }

        @Override
        public List<Integer> pids() {
            return List.of(PARENT, CHILD);
        }

        @Override
        public int foregroundGroup() {
            return PARENT;
        }

        @Override
        public byte[] terminalSettings() {
            return new byte[] {1, 2};
        }

        @Override
        public void close() {
            calls.add("close restore");
        }
    }
}
