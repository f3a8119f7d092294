package io.stasis.engine.capture;

import io.stasis.engine.CheckpointRequest;
import io.stasis.engine.EngineException;
import io.stasis.engine.ProcessKey;
import io.stasis.linux.KernelException;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Ends a tree with SIGKILL as one: every process is frozen before the first one dies, so that none sees another's end
 * (a broken pipe, a child's death) and writes that into its files as if it had been a failure of the computation.
 */
public final class TreeEnd {
    private static final int SIGKILL = 9;

    /** One that cannot be frozen in this time, as it is traced or waits for a disk, is killed where it stands. */
    private static final long PATIENCE_NANOS = 500_000_000L;

    private TreeEnd() {}

    /** Kills the tree and returns its processes. Those that could not be frozen may still be ending. */
    public static Set<ProcessKey> kill(CheckpointRequest request) {
        ProcessTree tree = new ProcessTree(request.host(), request.roots(), request.cookie());
        Set<ProcessKey> all = new LinkedHashSet<>();
        List<FrozenProcess> frozen = new ArrayList<>();
        Deque<ProcessKey> todo = new ArrayDeque<>(walk(tree));
        while (!todo.isEmpty()) {
            ProcessKey key = todo.poll();
            if (all.add(key)) {
                FrozenProcess process = freeze(key);
                if (process != null) {
                    frozen.add(process);
                }
            }
            if (todo.isEmpty()) {
                // What was born while the others were being frozen ends too.
                walk(tree).stream().filter(each -> !all.contains(each)).forEach(todo::add);
            }
        }
        for (ProcessKey key : all) {
            Libc.call(SystemCall.KILL, key.pid(), SIGKILL);
        }
        frozen.forEach(FrozenProcess::kill);
        return all;
    }

    private static List<ProcessKey> walk(ProcessTree tree) {
        try {
            return tree.walk();
        } catch (EngineException e) {
            return List.of(); // it has ended
        }
    }

    private static FrozenProcess freeze(ProcessKey key) {
        try {
            return FrozenProcess.freeze(key, PATIENCE_NANOS);
        } catch (EngineException | KernelException e) {
            return null;
        }
    }
}
