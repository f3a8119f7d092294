package io.stasis.engine.namespace;

import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ComputationImage.FileLock;
import io.stasis.image.model.ComputationImage.SignalOwner;
import io.stasis.image.model.ComputationImage.Terminal;
import io.stasis.image.model.ComputationImage.Zombie;
import io.stasis.image.model.OpenDescription;
import io.stasis.image.model.OpenDescription.EventPoll;
import io.stasis.image.model.OpenDescription.ProcessDescriptor;
import io.stasis.image.model.OpenDescription.PseudoTerminal.Master;
import io.stasis.image.model.ProcessImage.Identity;
import io.stasis.image.model.ProcessImage.PosixTimer;
import io.stasis.image.model.SystemVObject;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.Tasks;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Ids as the tree itself sees them, for a tree in a pid namespace: this host's /proc and system calls tell those of this
 * host, the image has those of the tree. Elsewhere they are the same.
 */
public final class InnerIds {
    private final Map<Integer, Integer> inner = new HashMap<>();

    /** Learns the ids of a process that stands still, or is a zombie, and of its threads, session and group. */
    public void learn(Pid pid) {
        ProcStatus.find(pid).filter(InnerIds::isElsewhere).ifPresent(status -> {
            put(status.nspid());
            put(status.nspgid());
            put(status.nssid());
            for (int tid : Tasks.threads(pid)) {
                ProcStatus.find(pid, new Tid(tid)).ifPresent(thread -> put(thread.nspid()));
            }
        });
    }

    /** Whether a process is in a pid namespace below this host's. */
    public static boolean isElsewhere(ProcStatus status) {
        return status.nspid().length > 1;
    }

    private void put(int[] ids) {
        inner.put(ids[0], ids[ids.length - 1]);
    }

    public int of(int host) {
        return inner.getOrDefault(host, host);
    }

    public Identity of(Identity identity) {
        return new Identity(
                of(identity.pid()),
                of(identity.parent()),
                of(identity.group()),
                of(identity.session()),
                identity.exitSignal(),
                identity.startTime(),
                identity.name());
    }

    public List<PosixTimer> of(List<PosixTimer> timers) {
        return timers.stream()
                .map(t -> new PosixTimer(
                        t.id(),
                        t.clock(),
                        t.notification(),
                        t.signal(),
                        t.sigval(),
                        of(t.target()),
                        t.valueNanos(),
                        t.intervalNanos()))
                .toList();
    }

    public ComputationImage of(ComputationImage image) {
        return new ComputationImage(
                of(image.root()),
                image.processes().stream().map(this::of).toList(),
                image.zombies().stream()
                        .map(z -> new Zombie(of(z.identity()), z.waitStatus(), z.userIds(), z.groupIds()))
                        .toList(),
                image.descriptions().stream().map(this::of).toList(),
                image.pipes(),
                image.sharedObjects(),
                image.terminals().stream()
                        .map(t -> new Terminal(
                                t.path(), t.termios(), t.windowSize(), of(t.foregroundGroup()), of(t.session())))
                        .toList(),
                image.savedFiles(),
                image.owners().stream()
                        .map(o -> new SignalOwner(o.description(), o.type(), of(o.id()), o.signal(), o.asynchronous()))
                        .toList(),
                image.namelessFiles(),
                image.segments(),
                image.locks().stream()
                        .map(l ->
                                new FileLock(l.description(), of(l.pid()), l.type(), l.write(), l.start(), l.length()))
                        .toList(),
                image.systemV().stream().map(this::of).toList());
    }

    private SystemVObject of(SystemVObject object) {
        return switch (object) {
            case SystemVObject.SemaphoreSet s ->
                new SystemVObject.SemaphoreSet(
                        s.id(),
                        s.key(),
                        s.user(),
                        s.group(),
                        s.mode(),
                        s.used(),
                        s.values(),
                        IntStream.of(s.pids()).map(this::of).toArray());
            case SystemVObject.MessageQueue q ->
                new SystemVObject.MessageQueue(
                        q.id(),
                        q.key(),
                        q.user(),
                        q.group(),
                        q.mode(),
                        q.capacity(),
                        q.messages(),
                        of(q.sender()),
                        of(q.receiver()));
        };
    }

    private OpenDescription of(OpenDescription description) {
        return switch (description) {
            case EventPoll e -> new EventPoll(e.statusFlags(), of(e.owner()), e.interests());
            case ProcessDescriptor p -> new ProcessDescriptor(p.statusFlags(), of(p.pid()));
            case Master m ->
                new Master(
                        m.statusFlags(),
                        m.number(),
                        m.termios(),
                        m.windowSize(),
                        m.packetMode(),
                        m.locked(),
                        m.hungUp(),
                        of(m.session()),
                        of(m.foreground()));
            default -> description;
        };
    }
}
