package io.stasis.engine.resource.thread;

import io.stasis.engine.Engine.Problem;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Kcmp;
import io.stasis.linux.proc.ProcStat;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What processes share with a relative by the flags of clone(2) and what a restart could only make as separate things:
 * the address space, also that of a vfork(2) that is not over, the table of descriptors, the directories.
 */
public final class SharedTables {
    private static final Map<Integer, String> KINDS = kinds();

    private SharedTables() {}

    private static Map<Integer, String> kinds() {
        Map<Integer, String> kinds = new LinkedHashMap<>();
        kinds.put(Kcmp.KCMP_VM, "address space (CLONE_VM, or a vfork that is not over)");
        kinds.put(Kcmp.KCMP_FILES, "descriptor table (CLONE_FILES)");
        kinds.put(Kcmp.KCMP_FS, "working directory and umask (CLONE_FS)");
        return kinds;
    }

    /** Compares each process with its parent, and with the sibling before it. */
    public static List<Problem> problems(Collection<Integer> processes) {
        List<Problem> problems = new ArrayList<>();
        Map<Integer, Integer> siblings = new HashMap<>();
        for (int pid : processes) {
            int parent = ProcStat.find(new Pid(pid)).map(ProcStat::ppid).orElse(0);
            Integer sibling = siblings.put(parent, pid);
            if (processes.contains(parent)) {
                compare(pid, parent, problems);
            }
            if (sibling != null) {
                compare(pid, sibling, problems);
            }
        }
        return problems;
    }

    private static void compare(int pid, int relative, List<Problem> problems) {
        KINDS.forEach((kind, name) -> {
            try {
                if (Kcmp.compare(pid, relative, kind, 0, 0) == Kcmp.SAME) {
                    problems.add(new Problem(
                            pid,
                            -1,
                            name,
                            "it shares it with process " + relative + ", which is not supported",
                            "let them be threads of one process, or processes of their own"));
                }
            } catch (KernelException e) {
                // One of them has ended, or is about to.
            }
        });
    }
}
