package io.stasis.engine.restore;

import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.OpenDescription.PseudoTerminal.Master;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Controlling terminals of sessions whose leader is in the tree: pseudo-terminals of the tree, and one that the restart
 * command made. See credentials(7), "Sessions". A session's leader takes its terminal before it has children, as only
 * they inherit it.
 */
final class SessionTerminals {
    private static final int TIOCSCTTY = 0x540e;
    private static final int TIOCSPGRP = 0x5410;

    private final Map<Integer, String> paths = new HashMap<>();
    private final Map<Integer, Integer> foreground = new HashMap<>();

    /** @param own path of a terminal that is for the root's session alone */
    SessionTerminals(ComputationImage image, Optional<String> own) {
        image.descriptions().forEach(description -> {
            if (description instanceof Master master && master.session() != 0) {
                paths.put(master.session(), "/dev/pts/" + master.number());
                foreground.put(master.session(), master.foreground());
            }
        });
        own.ifPresent(path -> paths.putIfAbsent(image.root(), path));
    }

    /** To be called when the leader has just founded its session. */
    void acquire(RestoredProcess leader) {
        String path = paths.get(leader.pid());
        if (path != null) {
            onTerminal(leader, path, TIOCSCTTY, 0);
        }
    }

    /** Gives every terminal of the tree its foreground group, when all groups have their members. */
    void bringToForeground(TreeBuilder tree) {
        foreground.forEach((session, group) -> {
            RestoredProcess leader = tree.process(session);
            if (leader != null && group != 0) {
                onTerminal(leader, paths.get(session), TIOCSPGRP, group);
            }
        });
    }

    /** A signal that the kernel would send to one in the background is blocked meanwhile. */
    private static void onTerminal(RestoredProcess leader, String path, int request, int group) {
        CallTable open = new CallTable();
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
