package io.stasis.engine.resource.pipe;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome.Connection;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.engine.resource.TreeEnds;
import io.stasis.image.model.ComputationImage.Pipe;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.OpenDescription.PipeEnd;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;

/**
 * Pipes and FIFOs, see pipe(7) and fifo(7).
 *
 * <p>Bytes in flight are read with tee(2), which leaves them where they are: nothing has to be put back when the program
 * runs on. In packet mode (O_DIRECT) the boundaries survive the tee and are kept. At restart the stub makes each pipe
 * once and opens all its descriptions; the contents are written when all processes are built.
 */
public final class Pipes implements DescriptorKind<PipeEnd> {
    private static final int F_SETFL = 4;
    private static final int F_SETPIPE_SZ = 1031;
    private static final int F_GETPIPE_SZ = 1032;
    private static final int FIONREAD = 0x541b;
    private static final int SPLICE_F_NONBLOCK = 2;
    private static final int DEFAULT_CAPACITY = 65536;
    private static final int READ_END = StubCalls.FIRST;
    private static final int WRITE_END = StubCalls.FIRST + 1;

    /** A pipe while it is captured: its contents are known once a reading end was seen. */
    private static final class Captured {
        final String id;
        final FileReference path;
        int capacity;
        byte[] contents = {};
        int[] packets = {};
        boolean read;

        Captured(String id, FileReference path) {
            this.id = id;
            this.path = path;
        }
    }

    private final TreeEnds tree;
    private final Map<String, Integer> indices = new HashMap<>();
    private final List<Captured> captured = new ArrayList<>();
    private final List<Connection> connections = new ArrayList<>();
    private final List<Pipe> pipes;

    /** For a capture. */
    public Pipes(TreeEnds tree) {
        this.tree = tree;
        this.pipes = List.of();
    }

    /** For a restore of the pipes of an image. */
    public Pipes(List<Pipe> pipes) {
        this.tree = null;
        this.pipes = pipes;
    }

    @Override
    public Class<PipeEnd> type() {
        return PipeEnd.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.status().isFifo() && !descriptor.isPathOnly();
    }

    private static boolean isNamed(Descriptor descriptor) {
        return descriptor.link().startsWith("/");
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        if (isNamed(descriptor)) {
            boolean deleted = !FileStatus.of(descriptor.link()).isSameFileAs(descriptor.status());
            return deleted
                    ? Optional.of(DescriptorKind.problem(
                            descriptor, "FIFO " + descriptor.link(), "it was deleted", "keep it, or close it"))
                    : Optional.empty();
        }
        return tree.leadsOutside(descriptor.link())
                ? Optional.of(DescriptorKind.problem(
                        descriptor,
                        descriptor.link(),
                        "its other end is held by a process outside the tree",
                        "checkpoint the tree that holds both ends"))
                : Optional.empty();
    }

    @Override
    public PipeEnd capture(Descriptor descriptor) {
        String id = descriptor.link();
        int index = indices.computeIfAbsent(id, key -> {
            captured.add(new Captured(key, isNamed(descriptor) ? descriptor.reference() : null));
            return captured.size() - 1;
        });
        Captured pipe = captured.get(index);
        if (!pipe.read) {
            try (Fd pidfd = PidFd.open(new Pid(descriptor.pid()));
                    Fd fd = PidFd.getFd(pidfd, descriptor.fd())) {
                pipe.capacity = (int) Libc.check(
                        Libc.call(SystemCall.FCNTL, fd.value(), F_GETPIPE_SZ, 0), "capacity of " + descriptor.link());
                if (descriptor.isReadable()) {
                    readContents(pipe, fd, descriptor.link());
                    pipe.read = true;
                    connections.add(new Connection(
                            pipe.id,
                            pipe.path == null ? "pipe" : "fifo",
                            pipe.contents.length,
                            tree.holders(descriptor.link()).stream().sorted().toList()));
                }
            }
        }
        return new PipeEnd(descriptor.statusFlags(), index);
    }

    private static void readContents(Captured pipe, Fd fd, String what) {
        ByteBuffer available = Libc.buffer(8);
        Libc.check(
                Libc.call(SystemCall.IOCTL, fd.value(), FIONREAD, Libc.address(available)), "bytes waiting in " + what);
        int bytes = available.getInt(0);
        if (bytes == 0) {
            return;
        }
        ByteBuffer ends = Libc.buffer(8);
        Libc.check(Libc.call(SystemCall.PIPE2, Libc.address(ends), Fcntl.O_CLOEXEC | Fcntl.O_NONBLOCK), "pipe2");
        try (Fd reader = new Fd(ends.getInt(0));
                Fd writer = new Fd(ends.getInt(4))) {
            // A tee starts at the front each time, so one call must take everything: as much room as there is there.
            Libc.check(
                    Libc.call(SystemCall.FCNTL, writer.value(), F_SETPIPE_SZ, pipe.capacity),
                    "room for the " + bytes + " bytes in " + what);
            long copied = Libc.check(
                    Libc.call(SystemCall.TEE, fd.value(), writer.value(), bytes, SPLICE_F_NONBLOCK), "tee of " + what);
            if (copied != bytes) {
                throw new EngineException(
                        EngineException.Kind.BUSY,
                        "only " + copied + " of the " + bytes + " bytes in " + what + " could be read; try again");
            }
            drain(pipe, reader, bytes);
        }
    }

    /** Reads our copy. A packet ends a read, other bytes do not: several reads mean packets. */
    private static void drain(Captured pipe, Fd reader, int bytes) {
        ByteBuffer buffer = Libc.buffer(bytes);
        List<Integer> lengths = new ArrayList<>();
        int done = 0;
        while (done < bytes) {
            long got = Libc.call(SystemCall.READ, reader.value(), Libc.address(buffer) + done, bytes - done);
            if (got == -Errno.EINTR) {
                continue;
            }
            Libc.check(got, "read of the copy of " + pipe.id);
            lengths.add((int) got);
            done += (int) got;
        }
        pipe.contents = new byte[bytes];
        buffer.get(0, pipe.contents);
        pipe.packets = lengths.size() > 1
                ? lengths.stream().mapToInt(Integer::intValue).toArray()
                : new int[0];
    }

    /** Connections seen since the last call. */
    @Override
    public List<Connection> takeConnections() {
        List<Connection> taken = List.copyOf(connections);
        connections.clear();
        return taken;
    }

    /** The pipes found, for the image. */
    public List<Pipe> pipes() {
        return captured.stream()
                .map(p -> new Pipe(p.path, p.capacity, p.contents, p.packets))
                .toList();
    }

    @Override
    public List<Problem> verify(PipeEnd description) {
        FileReference path = pipes.get(description.pipe()).path();
        if (path != null && !FileStatus.of(path.path()).isFifo()) {
            return List.of(new Problem(
                    0,
                    -1,
                    "FIFO " + path.path(),
                    "it does not exist",
                    "make it again with `mkfifo " + path.path() + "`"));
        }
        return List.of();
    }

    @Override
    public void open(PipeEnd description, int target, StubCalls stub) {
        throw new IllegalStateException("pipes are opened all ends at once, see openAll");
    }

    /** Makes every pipe with all its descriptions. */
    @Override
    public void openAll(SortedMap<Integer, PipeEnd> byTarget, StubCalls stub) {
        for (int i = 0; i < pipes.size(); i++) {
            Pipe pipe = pipes.get(i);
            if (pipe.path() == null) {
                CallTable calls = stub.calls();
                calls.must("make a pipe", SystemCall.PIPE2, calls.reserve(8), Fcntl.O_CLOEXEC);
            } else {
                // Open for both directions, so that no open of one direction waits for the other.
                makeFifoEnds(pipe.path().path(), stub);
            }
            if (pipe.capacity() != DEFAULT_CAPACITY) {
                stub.calls().must("set a pipe's capacity", SystemCall.FCNTL, WRITE_END, F_SETPIPE_SZ, pipe.capacity());
            }
            Set<Integer> unused = new HashSet<>(Set.of(READ_END, WRITE_END));
            int index = i;
            byTarget.forEach((target, end) -> {
                if (end.pipe() == index) {
                    openEnd(end, target, unused, stub);
                }
            });
            stub.closeTemporaries();
        }
    }

    private static void makeFifoEnds(String path, StubCalls stub) {
        for (int i = 0; i < 2; i++) {
            CallTable calls = stub.calls();
            calls.must(
                    "open FIFO " + path,
                    SystemCall.OPENAT,
                    Fcntl.AT_FDCWD,
                    calls.string(path),
                    Fcntl.O_RDWR | Fcntl.O_CLOEXEC,
                    0);
        }
    }

    /**
     * The two descriptions of pipe2(2) are known by their lack of O_LARGEFILE, and are those of the new pipe. Any other
     * was opened through /proc, which makes a description of its own with its own flags, unlike a dup.
     */
    private static void openEnd(PipeEnd end, int target, Set<Integer> unused, StubCalls stub) {
        int from = (end.statusFlags() & Fcntl.O_ACCMODE) == Fcntl.O_WRONLY ? WRITE_END : READ_END;
        if ((end.statusFlags() & Fcntl.O_LARGEFILE) == 0 && unused.remove(from)) {
            stub.duplicate(from, target);
            stub.setStatusFlags(target, end.statusFlags());
            return;
        }
        reopen(from, end.statusFlags() & (Fcntl.O_ACCMODE | Fcntl.O_NONBLOCK | Fcntl.O_DIRECT), target, stub);
    }

    private static void reopen(int from, int flags, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int openFlags = flags & ~Fcntl.O_DIRECT;
        int opened = calls.must(
                "open an end of a pipe",
                SystemCall.OPENAT,
                Fcntl.AT_FDCWD,
                calls.string("/proc/self/fd/" + from),
                openFlags | Fcntl.O_CLOEXEC,
                0);
        int moved = calls.must("open an end of a pipe", SystemCall.DUP3, 0, target, Fcntl.O_CLOEXEC);
        calls.forward(opened, moved, 0);
        calls.must("close a temporary descriptor", SystemCall.CLOSE, WRITE_END + 1);
        if (openFlags != flags) {
            // open(2) knows packet mode for no pipe, fcntl(2) does.
            stub.setStatusFlags(target, flags);
        }
    }

    /** Writes the contents back: whoever holds a reading end of a pipe can be made to lend a writing one. */
    @Override
    public List<Connection> complete(SortedMap<Integer, PipeEnd> byTarget, StubDescriptors stub) {
        List<Connection> done = new ArrayList<>();
        Set<Integer> refilled = new HashSet<>();
        byTarget.forEach((target, end) -> {
            Pipe pipe = pipes.get(end.pipe());
            if (pipe.contents().length > 0 && refilled.add(end.pipe())) {
                try (Fd writer = stub.reopen(target, Fcntl.O_WRONLY | Fcntl.O_NONBLOCK)) {
                    if (pipe.packetLengths().length > 0) {
                        // open(2) knows packet mode for no pipe, fcntl(2) does.
                        Libc.check(
                                Libc.call(SystemCall.FCNTL, writer.value(), F_SETFL, Fcntl.O_NONBLOCK | Fcntl.O_DIRECT),
                                "packet mode of a pipe");
                    }
                    write(writer, pipe);
                }
                boolean named = pipe.path() != null;
                String id = named ? pipe.path().path() : "pipe #" + end.pipe();
                done.add(new Connection(id, named ? "fifo" : "pipe", pipe.contents().length, List.of()));
            }
        });
        return done;
    }

    private static void write(Fd fd, Pipe pipe) {
        byte[] contents = pipe.contents();
        ByteBuffer buffer = Libc.buffer(contents.length);
        buffer.put(0, contents);
        int[] pieces = pipe.packetLengths().length > 0 ? pipe.packetLengths() : new int[] {contents.length};
        int position = 0;
        for (int piece : pieces) {
            int end = position + piece;
            while (position < end) {
                long put = Libc.call(SystemCall.WRITE, fd.value(), Libc.address(buffer) + position, end - position);
                if (put == -Errno.EINTR) {
                    continue;
                }
                Libc.check(put, "refilling a pipe with " + contents.length + " bytes");
                position += (int) put;
            }
        }
        assert position == Arrays.stream(pieces).sum();
    }
}
