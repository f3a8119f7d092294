package io.stasis.engine.resource.outside;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.OpenDescription.Terminal;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.ProcStat;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The terminal that the program was started from. It belongs to the world outside: at restart the terminal of the
 * restart command takes its place, or /dev/null in a detached restart. See tty_ioctl(4).
 */
public final class Terminals implements DescriptorKind<Terminal> {
    private static final int TCGETS2 = 0x802c542a;
    private static final int TIOCGWINSZ = 0x5413;
    private static final int TERMIOS2_BYTES = 44;
    private static final int WINSIZE_BYTES = 8;
    private static final int TTY_MAJOR = 4;
    private static final int TTYAUX_MAJOR = 5;
    private static final int PTMX_MINOR = 2;
    private static final int FIRST_PTY_MAJOR = 136;
    private static final int LAST_PTY_MAJOR = 143;
    private static final int SERIAL_MINOR = 64;

    private final List<ComputationImage.Terminal> terminals = new ArrayList<>();
    private final Set<Integer> treePids;
    private final Outside outside;

    /** For a capture: {@code treePids} may grow. */
    public Terminals(Set<Integer> treePids) {
        this.treePids = treePids;
        this.outside = null;
    }

    /** For a restore. */
    public Terminals(Outside outside) {
        this.treePids = Set.of();
        this.outside = outside;
    }

    static boolean isTerminal(FileStatus status) {
        if (!status.isCharacterDevice()) {
            return false;
        }
        int major = FileStatus.major(status.rdev());
        int minor = FileStatus.minor(status.rdev());
        return (major >= FIRST_PTY_MAJOR && major <= LAST_PTY_MAJOR)
                || (major == TTY_MAJOR && minor < SERIAL_MINOR)
                || (major == TTYAUX_MAJOR && minor != PTMX_MINOR);
    }

    @Override
    public Class<Terminal> type() {
        return Terminal.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return isTerminal(descriptor.status()) && !descriptor.isPathOnly();
    }

    @Override
    public Terminal capture(Descriptor descriptor) {
        for (int i = 0; i < terminals.size(); i++) {
            if (terminals.get(i).path().equals(descriptor.link())) {
                return new Terminal(descriptor.statusFlags(), i);
            }
        }
        byte[] termios = new byte[TERMIOS2_BYTES];
        byte[] size = new byte[WINSIZE_BYTES];
        try (var pidfd = PidFd.open(new Pid(descriptor.pid()));
                var fd = PidFd.getFd(pidfd, descriptor.fd())) {
            ByteBuffer buffer = Libc.buffer(64);
            long address = Libc.address(buffer);
            // A terminal that was hung up answers EIO: then it keeps zeroes, which a restore does not apply.
            if (Libc.call(SystemCall.IOCTL, fd.value(), TCGETS2 & 0xffffffffL, address) == 0) {
                buffer.get(0, termios);
            }
            if (Libc.call(SystemCall.IOCTL, fd.value(), TIOCGWINSZ, address) == 0) {
                buffer.get(0, size);
            }
        }
        int[] job = foreground(descriptor.status().rdev());
        terminals.add(new ComputationImage.Terminal(descriptor.link(), termios, size, job[0], job[1]));
        return new Terminal(descriptor.statusFlags(), terminals.size() - 1);
    }

    /** Foreground group and session, as a process of the tree whose controlling terminal it is knows them. */
    private int[] foreground(long device) {
        for (int pid : treePids) {
            Optional<ProcStat> stat = ProcStat.find(new Pid(pid));
            if (stat.isPresent()
                    && stat.get().ttyNr() != 0
                    && (FileStatus.device(
                                            ttyMajor(stat.get().ttyNr()),
                                            ttyMinor(stat.get().ttyNr()))
                                    == device
                            || FileStatus.major(device) == TTYAUX_MAJOR)) {
                return new int[] {stat.get().tpgid(), stat.get().session()};
            }
        }
        return new int[2];
    }

    // The device number's encoding in field 7 of proc_pid_stat(5).
    private static int ttyMajor(int number) {
        return number >>> 8 & 0xfff;
    }

    private static int ttyMinor(int number) {
        return number & 0xff | number >>> 12 & 0xfff00;
    }

    /** The terminals found, for the image. */
    public List<ComputationImage.Terminal> terminals() {
        return List.copyOf(terminals);
    }

    @Override
    public List<Problem> verify(Terminal description) {
        if (outside.detached() || outside.terminal().isPresent() || !outside.isKnown()) {
            return List.of();
        }
        return List.of(new Problem(
                0,
                -1,
                "its terminal",
                "the restart command has no terminal to take its place",
                "restart from a terminal, or with --detach"));
    }

    @Override
    public void open(Terminal description, int target, StubCalls stub) {
        String path = outside.detached() ? "/dev/null" : outside.terminal().orElseThrow();
        stub.open(path, description.statusFlags(), target);
    }
}
