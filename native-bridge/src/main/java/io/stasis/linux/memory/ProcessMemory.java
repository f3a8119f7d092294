package io.stasis.linux.memory;

import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.proc.Procfs;
import java.nio.ByteBuffer;

/**
 * Reads and writes the memory of another process: process_vm_readv(2) where it goes, {@code /proc/P/mem} else, which
 * also goes through page protections (a write to a private read-only page makes a private copy of it).
 *
 * <p>The descriptor belongs to the address space that the process had at {@link #open}: after an execve(2) it reads
 * nothing more. Buffers may be direct or not; direct ones are not copied. All of the wanted bytes are transferred or an
 * exception names process, address and length. Not thread-safe.
 */
public final class ProcessMemory implements AutoCloseable {
    private static final int IOV_MAX = 1024;
    private static final int IOVEC = 16;
    private static final int BOUNCE = 64 * 1024;

    private final Pid pid;
    private final Fd mem;
    private final ByteBuffer vectors = Libc.buffer(IOVEC * (IOV_MAX + 1));
    private final long vectorsAddress = Libc.address(vectors);
    private final ByteBuffer word = Libc.buffer(8);
    private final long wordAddress = Libc.address(word);

    private ProcessMemory(Pid pid, Fd mem) {
        this.pid = pid;
        this.mem = mem;
    }

    /** Needs ptrace attach access. @throws NoSuchProcessException when the process is gone */
    public static ProcessMemory open(Pid pid) {
        return new ProcessMemory(pid, Procfs.open(pid, "/proc/" + pid + "/mem", Fcntl.O_RDWR));
    }

    /**
     * Reads all ranges one behind the other into {@code target} from its position on, which moves.
     *
     * @param ranges pairs of start and end, as {@link PageScan} returns them
     * @return bytes read: the sum of the ranges
     */
    public long readVector(long[] ranges, ByteBuffer target) {
        return readVector(ranges, 0, ranges.length / 2, target);
    }

    /** Reads the pairs number {@code fromPair} (inclusive) to {@code toPair}. */
    public long readVector(long[] ranges, int fromPair, int toPair, ByteBuffer target) {
        long total = 0;
        for (int pair = fromPair; pair < toPair; pair++) {
            total += ranges[2 * pair + 1] - ranges[2 * pair];
        }
        if (total > target.remaining()) {
            throw new IllegalArgumentException(total + " bytes of process " + pid
                    + " don't fit into a buffer with room for " + target.remaining());
        }
        if (!target.isDirect()) {
            for (int pair = fromPair; pair < toPair; pair++) {
                long start = ranges[2 * pair];
                read(start, target, (int) (ranges[2 * pair + 1] - start));
            }
            return total;
        }
        long base = Libc.address(target);
        int pair = fromPair;
        long inPair = 0; // bytes of this pair that are there already
        while (pair < toPair) {
            int vector = 0;
            long wanted = 0;
            for (int next = pair; next < toPair && vector < IOV_MAX; next++, vector++) {
                long start = ranges[2 * next] + (next == pair ? inPair : 0);
                long length = ranges[2 * next + 1] - start;
                vectors.putLong((vector + 1) * IOVEC, start).putLong((vector + 1) * IOVEC + 8, length);
                wanted += length;
            }
            vectors.putLong(0, base + target.position()).putLong(8, wanted);
            long got = Libc.call(
                    SystemCall.PROCESS_VM_READV, pid.value(), vectorsAddress, 1, vectorsAddress + IOVEC, vector, 0);
            if (got < 0 && got != -Errno.EFAULT && got != -Errno.EPERM && got != -Errno.EINTR) {
                throw failure("reading", ranges[2 * pair] + inPair, wanted, (int) -got);
            }
            boolean fallBack = got != -Errno.EINTR && got < wanted;
            long advance = Math.max(got, 0);
            target.position(target.position() + (int) advance);
            while (pair < toPair && advance >= ranges[2 * pair + 1] - ranges[2 * pair] - inPair) {
                advance -= ranges[2 * pair + 1] - ranges[2 * pair] - inPair;
                inPair = 0;
                pair++;
            }
            inPair += advance;
            if (fallBack && pair < toPair) {
                // Something here is not readable for the process itself: the rest of this range goes by /proc.
                long start = ranges[2 * pair] + inPair;
                read(start, target, (int) (ranges[2 * pair + 1] - start));
                inPair = 0;
                pair++;
            }
        }
        return total;
    }

    /** Fills {@code target} from its position to its limit; the position moves there. */
    public void read(long address, ByteBuffer target) {
        read(address, target, target.remaining());
    }

    /** Writes all that remains in {@code source}; its position moves to its limit. */
    public void write(long address, ByteBuffer source) {
        ByteBuffer direct = source;
        if (!source.isDirect()) {
            direct = Libc.buffer(source.remaining());
            direct.put(source.duplicate()).flip();
        }
        long base = Libc.address(direct) + direct.position();
        int length = source.remaining();
        int done = 0;
        while (done < length) {
            long put = Libc.call(SystemCall.PWRITE64, mem.value(), base + done, length - done, address + done);
            if (put == -Errno.EINTR) {
                continue;
            }
            if (put <= 0) {
                throw failure("writing", address + done, length - done, put == 0 ? Errno.ESRCH : (int) -put);
            }
            done += (int) put;
        }
        source.position(source.position() + length);
        java.lang.ref.Reference.reachabilityFence(direct);
    }

    /** A native long. */
    public long readLong(long address) {
        readFully(address, wordAddress, 8);
        return word.getLong(0);
    }

    public void writeLong(long address, long value) {
        word.putLong(0, value);
        write(address, word.duplicate().clear());
    }

    @Override
    public void close() {
        mem.close();
    }

    private void read(long address, ByteBuffer target, int length) {
        if (target.isDirect()) {
            readFully(address, Libc.address(target) + target.position(), length);
            target.position(target.position() + length);
            java.lang.ref.Reference.reachabilityFence(target);
            return;
        }
        ByteBuffer bounce = Libc.buffer(Math.min(length, BOUNCE));
        long bounceAddress = Libc.address(bounce);
        for (int done = 0; done < length; ) {
            int part = Math.min(length - done, BOUNCE);
            readFully(address + done, bounceAddress, part);
            target.put(bounce.duplicate().clear().limit(part));
            done += part;
        }
    }

    private void readFully(long address, long to, int length) {
        int done = 0;
        while (done < length) {
            long got = Libc.call(SystemCall.PREAD64, mem.value(), to + done, length - done, address + done);
            if (got == -Errno.EINTR) {
                continue;
            }
            if (got <= 0) {
                throw failure("reading", address + done, length - done, got == 0 ? Errno.ESRCH : (int) -got);
            }
            done += (int) got;
        }
    }

    private RuntimeException failure(String doing, long address, long length, int errno) {
        String what = doing + " " + length + " bytes at 0x" + Long.toHexString(address) + " of process " + pid;
        return errno == Errno.ESRCH ? new NoSuchProcessException(pid, what) : new KernelException(what, errno);
    }
}
