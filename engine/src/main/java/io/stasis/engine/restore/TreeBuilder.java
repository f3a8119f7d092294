package io.stasis.engine.restore;

import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ComputationImage.Zombie;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.ProcessImage.Identity;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.WorkArea;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Makes the processes of a tree, still empty, with their pids, parents, sessions and process groups.
 *
 * <p>A process is born into the session of whoever clones it and can leave it only by founding its own (setsid(2)), so
 * the order matters: children that stayed in their parent's old session are made before the parent calls setsid. Where
 * the leader of a session or group is gone, a helper lends the id: it lives until the others have joined. A process
 * whose parent is not in its session, or not in the tree, is the child of a helper that dies, and so falls to the
 * nearest subreaper or to init, as it had in its first life.
 */
final class TreeBuilder {
    /** The session and process group of the restart command (or of the agent, for a detached restart). */
    static final int OUTSIDE = 0;

    private static final int PR_SET_NAME = 15;
    private static final int PR_SET_CHILD_SUBREAPER = 36;
    private static final int WALL = 0x40000000;
    private static final int RLIMIT_CORE = 4;

    private final RestoredProcess stub;
    private final WorkArea workArea;
    private final Cloning cloning;
    private final boolean detached;
    private final boolean ownSessions;
    private final SessionTerminals terminals;
    private final ProcessImage root;
    private final Map<Integer, Identity> identities = new LinkedHashMap<>();
    private final Map<Integer, ProcessImage> images = new HashMap<>();
    private final Map<Integer, Zombie> zombies = new HashMap<>();
    private final Map<Integer, RestoredProcess> made = new LinkedHashMap<>();
    /** Processes that must forget a SIGCHLD that the restore itself caused. */
    private final Set<Integer> disturbed = new HashSet<>();

    /**
     * @param detached whether the root founds a session where it cannot have the restart command's
     * @param ownSessions whether also the session and group that the root was started in are made anew, with their ids: in
     *     a pid namespace, and without a terminal, that the command's session would have to lend
     */
    TreeBuilder(
            RestoredProcess stub,
            WorkArea workArea,
            Cloning cloning,
            SessionTerminals terminals,
            ComputationImage computation,
            Collection<ProcessImage> processes,
            boolean detached,
            boolean ownSessions) {
        this.stub = stub;
        this.workArea = workArea;
        this.cloning = cloning;
        this.detached = detached;
        this.ownSessions = ownSessions;
        this.terminals = terminals;
        for (ProcessImage process : processes) {
            identities.put(process.identity().pid(), process.identity());
            images.put(process.identity().pid(), process);
        }
        for (Zombie zombie : computation.zombies()) {
            identities.put(zombie.identity().pid(), zombie.identity());
            zombies.put(zombie.identity().pid(), zombie);
        }
        this.root = images.get(computation.root());
    }

    /** Makes the process, its zombie children, and whoever has to exist before it, unless they exist already. */
    RestoredProcess create(int pid) {
        RestoredProcess existing = made.get(pid);
        if (existing != null) {
            return existing;
        }
        Identity identity = identities.get(pid);
        RestoredProcess parent = identities.containsKey(identity.parent()) ? create(identity.parent()) : null;
        existing = made.get(pid); // a parent makes early children itself
        if (existing != null) {
            return existing;
        }
        RestoredProcess process = born(identity, parent);
        process.image(images.get(pid));
        made.put(pid, process);
        settleSession(identity, process);
        for (Zombie zombie : zombies.values()) {
            if (zombie.identity().parent() == pid) {
                create(zombie.identity().pid());
            }
        }
        return process;
    }

    /** The session a process of the image belongs to after the restart. */
    private int session(Identity identity) {
        boolean outside = identity.session() == root.identity().session()
                && root.identity().session() != root.identity().pid();
        if (!outside || (ownSessions && identity.session() != OUTSIDE)) {
            return identity.session();
        }
        // Without a command to belong to, the root founds a session of its own.
        return detached ? root.identity().pid() : OUTSIDE;
    }

    private RestoredProcess born(Identity identity, RestoredProcess parent) {
        int session = session(identity);
        RestoredProcess creator = parent == null ? stub : parent;
        boolean isRoot = identity.pid() == root.identity().pid();
        if (isRoot && session != OUTSIDE && session != identity.pid()) {
            return rootThroughHelper(session);
        }
        if (isRoot || (parent != null && (session == identity.pid() || session == creator.session()))) {
            return cloning.clone(
                    creator,
                    identity.pid(),
                    parent == null ? Cloning.CLONE_PARENT : 0,
                    parent == null ? 0 : identity.exitSignal(),
                    creator.session());
        }
        return throughHelper(identity, parent, session);
    }

    /** The root in a session whose leader is gone; it is the command's child as ever, and so is the helper for a moment. */
    private RestoredProcess rootThroughHelper(int session) {
        RestoredProcess helper = cloning.clone(stub, session, Cloning.CLONE_PARENT, 0, stub.session());
        helper.call("found session " + session, SystemCall.SETSID);
        helper.session(session);
        RestoredProcess process = cloning.clone(helper, root.identity().pid(), Cloning.CLONE_PARENT, 0, session);
        helper.kill(); // the command waits for it together with the stub
        return process;
    }

    /** A process whose creator is not the parent it ends up with. */
    private RestoredProcess throughHelper(Identity identity, RestoredProcess parent, int session) {
        if (parent != null) {
            parent.call("become a subreaper", SystemCall.PRCTL, PR_SET_CHILD_SUBREAPER, 1);
        }
        boolean ownSession = session == identity.pid();
        boolean leaderLives = session != OUTSIDE && identities.containsKey(session);
        RestoredProcess maker = parent == null ? stub : parent;
        if (!ownSession && leaderLives) {
            maker = create(session);
        }
        int helperPid = !ownSession && !leaderLives && session != OUTSIDE ? session : 0;
        RestoredProcess helper = cloning.clone(maker, helperPid, 0, 0, maker.session());
        if (helperPid != 0) {
            helper.call("found session " + session, SystemCall.SETSID);
            helper.session(session);
        }
        RestoredProcess process = cloning.clone(helper, identity.pid(), 0, identity.exitSignal(), helper.session());
        dismiss(helper, maker);
        return process;
    }

    /** Founds the process's own session, after the children that belong to the old one. */
    private void settleSession(Identity identity, RestoredProcess process) {
        if (session(identity) != identity.pid()) {
            return;
        }
        for (Identity child : identities.values()) {
            if (child.parent() == identity.pid()
                    && child.pid() != identity.pid()
                    && session(child) == process.session()
                    && session(child) != identity.pid()) {
                create(child.pid());
            }
        }
        process.call("found a session", SystemCall.SETSID);
        process.session(identity.pid());
        terminals.acquire(process);
    }

    /** Puts everybody into their process groups; call once when all processes are made. */
    void assignGroups() {
        Set<Integer> groups = new HashSet<>();
        for (Identity identity : identities.values()) {
            if (!isOutsideGroup(identity)) {
                groups.add(identity.group());
            }
        }
        List<RestoredProcess[]> helpers = new ArrayList<>();
        for (int group : groups) {
            RestoredProcess leader = made.get(group);
            if (leader == null && isSessionWithoutLeader(group)) {
                continue; // its members were born into the group together with the session
            }
            if (leader == null) {
                leader = lendGroup(group, helpers);
            }
            if (leader.session() != group) { // a session leader leads its group from birth
                leader.call("found process group " + group, SystemCall.SETPGID, 0, group);
            }
        }
        for (Identity identity : identities.values()) {
            if (!isOutsideGroup(identity) && identity.group() != identity.pid()) {
                made.get(identity.pid())
                        .call("join process group " + identity.group(), SystemCall.SETPGID, 0, identity.group());
            }
        }
        for (RestoredProcess[] helper : helpers) {
            dismiss(helper[0], helper[1]);
        }
        terminals.bringToForeground(this);
    }

    private boolean isSessionWithoutLeader(int group) {
        return identities.values().stream().anyMatch(i -> session(i) == group && i.group() == group);
    }

    private boolean isOutsideGroup(Identity identity) {
        Identity top = root.identity();
        return !(ownSessions && top.group() != OUTSIDE)
                && top.session() != top.pid()
                && top.group() != top.pid()
                && identity.group() == top.group()
                && identity.session() == top.session();
    }

    /** A helper with the id of a group whose leader is gone, in the session of the group's members. */
    private RestoredProcess lendGroup(int group, List<RestoredProcess[]> helpers) {
        for (Identity identity : identities.values()) {
            if (identity.group() == group) {
                RestoredProcess member = made.get(identity.pid());
                RestoredProcess helper = cloning.clone(member, group, 0, 0, member.session());
                helpers.add(new RestoredProcess[] {helper, member});
                return helper;
            }
        }
        throw new IllegalStateException("no member of process group " + group);
    }

    /** Ends the zombies, now that nobody needs them to lead a session or group. */
    void endZombies() {
        for (Zombie zombie : zombies.values()) {
            RestoredProcess process = made.remove(zombie.identity().pid());
            int status = zombie.waitStatus();
            int signal = status & 0x7f;
            CallTable calls = new CallTable();
            calls.query(
                    SystemCall.PRCTL,
                    PR_SET_NAME,
                    calls.string(zombie.identity().name()));
            calls.query(SystemCall.PRLIMIT64, 0, RLIMIT_CORE, calls.longs(0, 0), 0);
            calls.query(SystemCall.SETRESGID, zombie.groupIds()[0], zombie.groupIds()[1], zombie.groupIds()[2]);
            calls.query(SystemCall.SETRESUID, zombie.userIds()[0], zombie.userIds()[1], zombie.userIds()[2]);
            if (signal == 0) {
                calls.query(SystemCall.EXIT_GROUP, status >> 8);
                workArea.runToDeath(process.memory(), process.main(), process.pid(), process.pid(), calls);
                process.main().reap();
            } else {
                process.run(calls);
                process.main().killBy(signal);
            }
            process.close();
            disturbed.add(zombie.identity().parent());
        }
        zombies.clear();
    }

    /** Whether the process has a SIGCHLD pending that it had not in the image. */
    boolean isDisturbed(int pid) {
        return disturbed.contains(pid);
    }

    Collection<RestoredProcess> all() {
        return made.values();
    }

    RestoredProcess process(int pid) {
        return made.get(pid);
    }

    /** Kills a helper and waits for it in its parent, to which it must not show. */
    private void dismiss(RestoredProcess helper, RestoredProcess parent) {
        helper.kill();
        // The stub is outside the namespace that the helper is in.
        int pid = parent.isInNamespace() ? helper.pid() : helper.host().value();
        parent.call("wait for a helper", SystemCall.WAIT4, pid, 0, WALL, 0);
    }

    /** Kills whatever was made. */
    void killAll() {
        List<RestoredProcess> processes = new ArrayList<>(made.values());
        for (int i = processes.size() - 1; i >= 0; i--) {
            processes.get(i).kill();
        }
        made.clear();
    }
}
