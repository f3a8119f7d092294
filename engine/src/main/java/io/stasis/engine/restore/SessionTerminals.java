package io.stasis.engine.restore;

import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.OpenDescription.PseudoTerminal.Master;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.HashMap;
import java.util.Map;

/**
 * Controlling terminals that are pseudo-terminals of the tree: credentials(7), "Sessions". A session's leader takes its
 * terminal before it has children, as only they inherit it.
 */
final class SessionTerminals {
    private static final int TIOCSCTTY = 0x540e;
    private static final int TIOCSPGRP = 0x5410;

    private final Map<Integer, Master> bySession = new HashMap<>();

    SessionTerminals(ComputationImage image) {
        image.descriptions().forEach(description -> {
            if (description instanceof Master master && master.session() != 0) {
                bySession.put(master.session(), master);
            }
        });
    }

    /** To be called when the leader has just founded its session. */
    void acquire(RestoredProcess leader) {
        Master master = bySession.get(leader.pid());
        if (master != null) {
            onTerminal(leader, master, TIOCSCTTY, 0);
        }
    }

    /** Gives every terminal its foreground group, when all groups have their members. */
    void bringToForeground(TreeBuilder tree) {
        bySession.forEach((session, master) -> {
            RestoredProcess leader = tree.process(session);
            if (leader != null && master.foreground() != 0) {
                onTerminal(leader, master, TIOCSPGRP, master.foreground());
            }
        });
    }

    /** A signal that the kernel would send to one in the background is blocked meanwhile. */
    private static void onTerminal(RestoredProcess leader, Master master, int request, int group) {
        CallTable open = new CallTable();
        String path = "/dev/pts/" + master.number();
        int opened = open.must(
                "open " + path,
                SystemCall.OPENAT,
                Fcntl.AT_FDCWD,
                open.string(path),
                Fcntl.O_RDWR | Fcntl.O_NOCTTY | Fcntl.O_CLOEXEC,
                0);
        long fd = leader.run(open).result(opened);
        CallTable calls = new CallTable();
        calls.must(
                "make " + path + " the terminal of session " + leader.pid(),
                SystemCall.IOCTL,
                fd,
                request,
                group == 0 ? 0 : calls.longs(group));
        calls.must("close " + path, SystemCall.CLOSE, fd);
        leader.run(calls);
    }
}
