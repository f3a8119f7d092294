package io.stasis.engine.capture;

import io.stasis.engine.EngineException;
import io.stasis.engine.ProcessKey;
import io.stasis.linux.Pid;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcessScan;
import io.stasis.linux.proc.Tasks;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Finds the processes of a tree: the descendants of its roots, and processes that were re-parented away from it, which
 * the environment variable STASIS_COOKIE gives away.
 */
final class ProcessTree {
    /** Name of the environment variable that every process of a launched tree inherits. */
    private static final String COOKIE = "STASIS_COOKIE";

    private static final int OWN_PID = (int) ProcessHandle.current().pid();

    private final String host;
    private final List<Integer> roots;
    private final String cookie;
    private final Set<Integer> scanned = new HashSet<>();
    private final Set<Integer> orphans = new HashSet<>();

    ProcessTree(String host, List<Integer> roots, String cookie) {
        this.host = host;
        this.roots = roots;
        this.cookie = cookie;
    }

    /** Live processes, parents before children, nothing frozen. */
    List<ProcessKey> walk() {
        for (int root : roots) {
            if (ProcStat.find(new Pid(root)).isEmpty()) {
                throw new EngineException(
                        EngineException.Kind.ACCESS, "there is no process " + root + "; see `ps` for those that run");
            }
        }
        findOrphans();
        Map<Integer, ProcessKey> found = new LinkedHashMap<>();
        Deque<Integer> todo = new ArrayDeque<>(roots);
        todo.addAll(orphans);
        while (!todo.isEmpty()) {
            int pid = todo.poll();
            if (found.containsKey(pid) || pid == OWN_PID) {
                continue;
            }
            key(pid).ifPresent(key -> {
                found.put(pid, key);
                for (int child : Tasks.childrenOf(new Pid(pid))) {
                    todo.add(child);
                }
            });
        }
        return new ArrayList<>(found.values());
    }

    /** Live processes of the tree that are not among the frozen ones. */
    List<ProcessKey> missing(Collection<FrozenProcess> frozen, Set<Integer> known) {
        Set<Integer> pids = new HashSet<>();
        for (FrozenProcess process : frozen) {
            pids.addAll(process.children());
        }
        findOrphans();
        pids.addAll(orphans);
        List<ProcessKey> missing = new ArrayList<>();
        for (int pid : pids) {
            if (!known.contains(pid)) {
                key(pid).ifPresent(missing::add);
            }
        }
        return missing;
    }

    /** Looks at processes that were not there at the last scan: the environment of the others is known. */
    private void findOrphans() {
        if (cookie == null) {
            return;
        }
        scanned.add(OWN_PID); // an agent that was started inside the tree is not part of it
        if (scanned.size() == 1) {
            for (int pid : ProcessScan.withEnvironment(COOKIE + "=" + cookie)) {
                if (pid != OWN_PID) {
                    orphans.add(pid);
                }
            }
            for (int pid : ProcessScan.all()) {
                scanned.add(pid);
            }
            return;
        }
        for (int pid : ProcessScan.all()) {
            if (scanned.add(pid) && ProcessScan.hasEnvironment(new Pid(pid), COOKIE + "=" + cookie)) {
                orphans.add(pid);
            }
        }
    }

    private java.util.Optional<ProcessKey> key(int pid) {
        return ProcStat.find(new Pid(pid))
                .filter(stat -> stat.state() != 'Z' && stat.state() != 'X')
                .map(stat -> new ProcessKey(host, pid, stat.startTime()));
    }
}
