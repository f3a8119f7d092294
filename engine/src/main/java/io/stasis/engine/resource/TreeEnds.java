package io.stasis.engine.resource;

import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcessScan;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Who holds the ends of the pipes of a tree, inside it and outside.
 *
 * <p>A pipe leads outside when the tree holds one kind of end only and some other process holds the other. Other users'
 * processes cannot be looked into without CAP_SYS_PTRACE: a pipe whose other end is nowhere to be seen counts as
 * leading outside when it is a standard descriptor, and else as closed at the other end.
 */
public final class TreeEnds {
    private static final int LAST_STANDARD = 2;
    private static final int OWN_PID = (int) ProcessHandle.current().pid();

    private static final class Ends {
        boolean reader;
        boolean writer;
        int standardRole = -1;
        final Set<Integer> holders = new HashSet<>();
        Boolean outside;
    }

    private final Set<Integer> treePids;
    private final Set<Integer> read = new HashSet<>();
    private final Map<String, Ends> pipes = new HashMap<>();
    private Set<String> heldOutside;

    /** @param treePids processes of the tree; may grow */
    public TreeEnds(Set<Integer> treePids) {
        this.treePids = treePids;
    }

    private Ends ends(String link) {
        for (int pid : treePids) {
            if (read.add(pid)) {
                readProcess(pid);
            }
        }
        return pipes.getOrDefault(link, new Ends());
    }

    private void readProcess(int pid) {
        for (int fd : descriptors(pid)) {
            Descriptor.read(pid, fd).filter(d -> d.link().startsWith("pipe:")).ifPresent(d -> {
                Ends ends = pipes.computeIfAbsent(d.link(), link -> new Ends());
                ends.reader |= d.isReadable();
                ends.writer |= d.isWritable();
                ends.holders.add(pid);
                if (fd <= LAST_STANDARD && ends.standardRole < 0) {
                    ends.standardRole = fd;
                }
            });
        }
    }

    private static int[] descriptors(int pid) {
        try {
            return FdTable.list(new Pid(pid));
        } catch (NoSuchProcessException | KernelException e) {
            return new int[0];
        }
    }

    /** Forgets what was read: descriptors may have changed since the survey, which looked at a running tree. */
    public void refresh() {
        read.clear();
        pipes.clear();
        heldOutside = null;
    }

    public boolean leadsOutside(String link) {
        Ends ends = ends(link);
        if (ends.outside == null) {
            ends.outside = !(ends.reader && ends.writer) && isHeldOutside(link, ends);
        }
        return ends.outside;
    }

    private boolean isHeldOutside(String link, Ends ends) {
        if (heldOutside == null) {
            heldOutside = pipesOutside();
        }
        return heldOutside.contains(link) || (ends.standardRole >= 0 && !seesEverybody());
    }

    private static boolean seesEverybody() {
        return io.stasis.linux.proc.SystemInfo.hasCapability(io.stasis.linux.libc.Capability.CAP_SYS_PTRACE);
    }

    private Set<String> pipesOutside() {
        Set<String> found = new HashSet<>();
        for (int pid : ProcessScan.all()) {
            // What is on its way through a socket is held here while it is looked at.
            if (pid != OWN_PID && !isOfTree(pid)) {
                for (int fd : descriptors(pid)) {
                    addPipe(pid, fd, found);
                }
            }
        }
        return found;
    }

    /** A process that was born after the tree was listed is of the tree too. */
    private boolean isOfTree(int pid) {
        int at = pid;
        while (at > 1) {
            if (treePids.contains(at)) {
                return true;
            }
            at = ProcStat.find(new Pid(at)).map(ProcStat::ppid).orElse(0);
        }
        return false;
    }

    private static void addPipe(int pid, int fd, Set<String> found) {
        try {
            String link = FdTable.link(new Pid(pid), fd);
            if (link.startsWith("pipe:")) {
                found.add(link);
            }
        } catch (NoSuchProcessException | KernelException e) {
            // Closed meanwhile: the next checkpoint sees it.
        }
    }

    /** The standard descriptor of some process of the tree that leads to this pipe; -1 when there is none. */
    public int standardRole(String link) {
        return ends(link).standardRole;
    }

    /** Processes of the tree that hold an end. */
    public Set<Integer> holders(String link) {
        return Set.copyOf(ends(link).holders);
    }
}
