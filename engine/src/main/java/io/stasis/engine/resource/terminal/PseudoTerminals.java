package io.stasis.engine.resource.terminal;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.PseudoTerminal;
import io.stasis.image.model.OpenDescription.PseudoTerminal.Master;
import io.stasis.image.model.OpenDescription.PseudoTerminal.Slave;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;

/**
 * Pseudo-terminals whose master is held by a process of the tree: terminal multiplexers, launchers of parallel programs,
 * expect scripts. They come back with their numbers, settings and window sizes; see pty(7), ioctl_tty(2). Their sessions
 * are joined to them when the processes are made.
 *
 * <p>What stands in their queues can only be read by taking it away. A checkpoint does not: it asks to be tried again.
 */
public final class PseudoTerminals implements DescriptorKind<PseudoTerminal> {
    private static final int TTYAUX_MAJOR = 5;
    private static final int TTY_MINOR = 0;
    private static final int PTMX_MINOR = 2;
    private static final int FIRST_SLAVE_MAJOR = 136;
    private static final int LAST_SLAVE_MAJOR = 143;
    private static final int MINORS = 256;
    private static final long TIOCGPTN = 0x80045430L;
    private static final long TIOCSPTLCK = 0x40045431L;
    private static final long TIOCGPTLCK = 0x80045439L;
    private static final long TIOCGPKT = 0x80045438L;
    private static final long TIOCPKT = 0x5420;
    private static final long TCGETS2 = 0x802c542aL;
    private static final long TCSETS2 = 0x402c542bL;
    private static final long TIOCGWINSZ = 0x5413;
    private static final long TIOCSWINSZ = 0x5414;
    private static final long TIOCGSID = 0x5429;
    private static final long TIOCGPGRP = 0x540f;
    private static final long FIONREAD = 0x541b;
    private static final int TERMIOS2_BYTES = 44;
    private static final int WINSIZE_BYTES = 8;
    private static final short POLLHUP = 0x10;
    /** As many numbers below the wanted one are tried as there is surely room for descriptors. */
    private static final int MOST_BELOW = 50;

    private final Set<Integer> treePids;
    /** Numbers of those whose master is in the tree, null when not looked at yet. */
    private Set<Integer> numbers;

    /** @param treePids processes of the tree, which may grow; empty for a restore */
    public PseudoTerminals(Set<Integer> treePids) {
        this.treePids = treePids;
    }

    @Override
    public Class<PseudoTerminal> type() {
        return PseudoTerminal.class;
    }

    @Override
    public void lookAgain() {
        numbers = null;
    }

    private Set<Integer> numbers() {
        if (numbers == null) {
            numbers = new HashSet<>();
            for (int pid : treePids) {
                addMasters(pid);
            }
        }
        return numbers;
    }

    private void addMasters(int pid) {
        try {
            for (int fd : FdTable.list(new Pid(pid))) {
                Descriptor.read(pid, fd)
                        .filter(PseudoTerminals::isMaster)
                        .flatMap(PseudoTerminals::numberOfMaster)
                        .ifPresent(numbers::add);
            }
        } catch (NoSuchProcessException | KernelException e) {
            // It ends while it is looked at.
        }
    }

    private static boolean isMaster(Descriptor descriptor) {
        FileStatus status = descriptor.status();
        return status.isCharacterDevice()
                && FileStatus.major(status.rdev()) == TTYAUX_MAJOR
                && FileStatus.minor(status.rdev()) == PTMX_MINOR
                && !descriptor.isPathOnly();
    }

    private static Optional<Integer> numberOfMaster(Descriptor descriptor) {
        try (Fd pidfd = PidFd.open(new Pid(descriptor.pid()));
                Fd fd = PidFd.getFd(pidfd, descriptor.fd())) {
            return Optional.of(integer(fd, TIOCGPTN, -1)).filter(number -> number >= 0);
        } catch (KernelException e) {
            return Optional.empty();
        }
    }

    /** The number of the pseudo-terminal that a descriptor leads to the slave of, -1 for none. */
    private static int numberOfSlave(Descriptor descriptor) {
        FileStatus status = descriptor.status();
        if (!status.isCharacterDevice() || descriptor.isPathOnly()) {
            return -1;
        }
        int major = FileStatus.major(status.rdev());
        int minor = FileStatus.minor(status.rdev());
        if (major == TTYAUX_MAJOR && minor == TTY_MINOR) {
            // Opened as /dev/tty: the controlling terminal, in field 7 of proc_pid_stat(5).
            int terminal = ProcStat.find(new Pid(descriptor.pid()))
                    .map(ProcStat::ttyNr)
                    .orElse(0);
            major = terminal >>> 8 & 0xfff;
            minor = terminal & 0xff | terminal >>> 12 & 0xfff00;
        }
        return major >= FIRST_SLAVE_MAJOR && major <= LAST_SLAVE_MAJOR
                ? (major - FIRST_SLAVE_MAJOR) * MINORS + minor
                : -1;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return isMaster(descriptor) || numbers().contains(numberOfSlave(descriptor));
    }

    @Override
    public PseudoTerminal capture(Descriptor descriptor) {
        if (!isMaster(descriptor)) {
            return new Slave(descriptor.statusFlags(), numberOfSlave(descriptor));
        }
        try (Fd pidfd = PidFd.open(new Pid(descriptor.pid()));
                Fd fd = PidFd.getFd(pidfd, descriptor.fd())) {
            int number = integer(fd, TIOCGPTN, -1);
            boolean hungUp = isHungUp(fd);
            checkEmpty(fd, number, hungUp);
            return new Master(
                    descriptor.statusFlags(),
                    number,
                    bytes(fd, TCGETS2, TERMIOS2_BYTES),
                    bytes(fd, TIOCGWINSZ, WINSIZE_BYTES),
                    integer(fd, TIOCGPKT, 0) != 0,
                    integer(fd, TIOCGPTLCK, 0) != 0,
                    hungUp,
                    integer(fd, TIOCGSID, 0),
                    integer(fd, TIOCGPGRP, 0));
        }
    }

    /** Whether its slave has been opened and is closed by all. */
    private static boolean isHungUp(Fd fd) {
        ByteBuffer poll = Libc.buffer(8);
        poll.putInt(0, fd.value());
        return Libc.call(SystemCall.POLL, Libc.address(poll), 1, 0) == 1 && (poll.getShort(6) & POLLHUP) != 0;
    }

    private static void checkEmpty(Fd master, int number, boolean hungUp) {
        int bytes = integer(master, FIONREAD, 0);
        if (bytes == 0 && !hungUp) {
            ByteBuffer path = Libc.string("/dev/pts/" + number);
            int flags = Fcntl.O_RDWR | Fcntl.O_NOCTTY | Fcntl.O_NONBLOCK | Fcntl.O_CLOEXEC;
            long slave = Libc.call(SystemCall.OPENAT, Fcntl.AT_FDCWD, Libc.address(path), flags, 0);
            if (!Libc.isError(slave)) {
                try (Fd fd = new Fd((int) slave)) {
                    bytes = integer(fd, FIONREAD, 0);
                }
            }
        }
        if (bytes > 0) {
            throw new EngineException(
                    EngineException.Kind.BUSY,
                    bytes + " bytes wait in the pseudo-terminal /dev/pts/" + number
                            + ", where nobody can look at them without taking them; try again");
        }
    }

    private static int integer(Fd fd, long request, int missing) {
        ByteBuffer value = Libc.buffer(8);
        return Libc.call(SystemCall.IOCTL, fd.value(), request, Libc.address(value)) == 0 ? value.getInt(0) : missing;
    }

    private static byte[] bytes(Fd fd, long request, int length) {
        ByteBuffer buffer = Libc.buffer(64);
        Libc.check(
                Libc.call(SystemCall.IOCTL, fd.value(), request, Libc.address(buffer)),
                "the settings of a pseudo-terminal");
        byte[] value = new byte[length];
        buffer.get(0, value);
        return value;
    }

    @Override
    public void open(PseudoTerminal description, int target, StubCalls stub) {
        throw new IllegalStateException("pseudo-terminals are made all at once, see openAll");
    }

    @Override
    public void openAll(SortedMap<Integer, PseudoTerminal> byTarget, StubCalls stub) {
        Map<Integer, Integer> masters = new HashMap<>();
        byTarget.forEach((target, description) -> {
            if (description instanceof Master master) {
                openMaster(master, target, stub);
                masters.put(master.number(), target);
            }
        });
        byTarget.forEach((target, description) -> {
            if (description instanceof Slave slave) {
                stub.open("/dev/pts/" + slave.number(), slave.statusFlags(), target);
            } else if (description instanceof Master master && master.hungUp()) {
                // Once opened and closed, its master sees an end rather than nothing.
                stub.open("/dev/pts/" + master.number(), Fcntl.O_RDWR, StubCalls.FIRST + 1);
                stub.closeTemporaries();
            }
        });
    }

    /** The kernel gives the lowest free number: those below the one that is wanted are held until it comes. */
    private static void openMaster(Master master, int target, StubCalls stub) {
        for (int at = StubCalls.FIRST; ; at++) {
            int descriptor = at;
            CallTable calls = stub.calls();
            calls.must(
                    "open a pseudo-terminal",
                    SystemCall.OPENAT,
                    Fcntl.AT_FDCWD,
                    calls.string("/dev/ptmx"),
                    master.statusFlags() & (Fcntl.O_ACCMODE | Fcntl.O_NONBLOCK) | Fcntl.O_NOCTTY | Fcntl.O_CLOEXEC,
                    0);
            int[] number = new int[1];
            stub.then(descriptors -> {
                try (Fd fd = descriptors.copy(descriptor)) {
                    number[0] = integer(fd, TIOCGPTN, -1);
                }
            });
            if (number[0] == master.number()) {
                settle(master, descriptor, target, stub);
                return;
            }
            if (number[0] > master.number() || descriptor > StubCalls.FIRST + MOST_BELOW) {
                throw new EngineException(
                        EngineException.Kind.FAILED,
                        "the pseudo-terminal /dev/pts/" + master.number()
                                + " is taken by another program; end what runs"
                                + " in it, or restart when it has ended");
            }
        }
    }

    private static void settle(Master master, int descriptor, int target, StubCalls stub) {
        stub.duplicate(descriptor, target);
        CallTable calls = stub.calls();
        String what = "set up /dev/pts/" + master.number();
        calls.must(what, SystemCall.IOCTL, target, TIOCSPTLCK, calls.longs(0));
        calls.must(what, SystemCall.IOCTL, target, TCSETS2, calls.data(master.termios()));
        calls.must(what, SystemCall.IOCTL, target, TIOCSWINSZ, calls.data(master.windowSize()));
        stub.closeTemporaries();
    }

    @Override
    public List<io.stasis.engine.Outcome.Connection> complete(
            SortedMap<Integer, PseudoTerminal> byTarget, StubDescriptors stub) {
        byTarget.forEach((target, description) -> {
            if (description instanceof Master master) {
                try (Fd fd = stub.copy(target)) {
                    String what = "set up /dev/pts/" + master.number();
                    set(fd, TIOCPKT, master.packetMode(), what);
                    set(fd, TIOCSPTLCK, master.locked(), what);
                }
            }
        });
        return List.of();
    }

    private static void set(Fd fd, long request, boolean on, String what) {
        ByteBuffer value = Libc.buffer(8);
        value.putInt(0, on ? 1 : 0);
        Libc.check(Libc.call(SystemCall.IOCTL, fd.value(), request, Libc.address(value)), what);
    }

    @Override
    public List<Problem> verify(PseudoTerminal description) {
        return description instanceof Master master
                        && FileStatus.of("/dev/pts/" + master.number()).exists()
                ? List.of(new Problem(
                        0,
                        -1,
                        "pseudo-terminal /dev/pts/" + master.number(),
                        "another program has it",
                        "end what runs in it, or restart when it has ended"))
                : List.of();
    }
}
