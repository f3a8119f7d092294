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
import java.util.Arrays;

/**
 * Finds the pages of a process that hold content of its own, by the ioctl PAGEMAP_SCAN on {@code /proc/P/pagemap} (Linux
 * 6.7), without reading them.
 *
 * <pre>{@code
 * try (PageScan scan = PageScan.open(pid)) {
 *     long[] ranges = scan.populated(area.start(), area.end()); // start, end, start, end, ...
 * }
 * }</pre>
 *
 * <p>Private content are anonymous pages, in memory or swapped out; neither pages of a mapped file that were only read
 * nor the zero page. Guard pages of madvise(2) MADV_GUARD_INSTALL, which can't be read, are left out and told by {@link
 * #guarded}. Skip the areas named {@code [v*}.
 *
 * <p>Page tables are what is looked at. A page of a shared object that this process has not touched is not seen, though
 * others may have filled it: of such an object, lseek(2) SEEK_DATA on its file tells more.
 *
 * <p>Before Linux 6.7 the entries of pagemap are read one by one. There the zero page can't be told from content, so
 * more is returned. Not thread-safe.
 */
public final class PageScan implements AutoCloseable {
    // <linux/fs.h>
    private static final long PAGEMAP_SCAN = 0xC0606610L;
    private static final long PAGE_IS_FILE = 1 << 2;
    private static final long PAGE_IS_PRESENT = 1 << 3;
    private static final long PAGE_IS_SWAPPED = 1 << 4;
    private static final long PAGE_IS_PFNZERO = 1 << 5;
    private static final long PAGE_IS_GUARD = 1 << 8;
    private static final int ARGUMENT = 96;
    private static final int REGION = 24;
    private static final int REGIONS = 2048;

    // Documentation/admin-guide/mm/pagemap.rst
    private static final long PM_GUARD = 1L << 58;
    private static final long PM_FILE = 1L << 61;
    private static final long PM_SWAP = 1L << 62;
    private static final long PM_PRESENT = 1L << 63;

    private static final int PAGE_SHIFT = 12;

    /** How the kernel is asked; found out at the first scan. */
    enum Method {
        SCAN_WITH_GUARDS,
        SCAN,
        PAGEMAP
    }

    private static volatile Method best = Method.SCAN_WITH_GUARDS;

    private final Pid pid;
    private final Fd pagemap;
    private final Method forced;
    private final ByteBuffer argument = Libc.buffer(ARGUMENT);
    private final long argumentAddress = Libc.address(argument);
    private final ByteBuffer regions = Libc.buffer(REGIONS * REGION);
    private final long regionsAddress = Libc.address(regions);
    private long[] found = new long[256];
    private int count;

    private PageScan(Pid pid, Method forced) {
        this.pid = pid;
        this.forced = forced;
        this.pagemap = Procfs.open(pid, "/proc/" + pid + "/pagemap", Fcntl.O_RDONLY);
    }

    /**
     * Needs ptrace read access.
     *
     * @throws NoSuchProcessException when the process is gone
     */
    public static PageScan open(Pid pid) {
        return new PageScan(pid, null);
    }

    static PageScan open(Pid pid, Method method) {
        return new PageScan(pid, method);
    }

    /** One scan of {@link #populated(long, long)}. */
    public static long[] populated(Pid pid, long start, long end) {
        try (PageScan scan = open(pid)) {
            return scan.populated(start, end);
        }
    }

    /** The pages with private content in {@code start} (inclusive) to {@code end}, as pairs of start and end, ascending. */
    public long[] populated(long start, long end) {
        return populated(start, end, false);
    }

    /** @param sharedObject pages of a shared object count too, as far as this process has touched them */
    public long[] populated(long start, long end, boolean sharedObject) {
        long no = PAGE_IS_PFNZERO | (sharedObject ? 0 : PAGE_IS_FILE);
        return scan(start, end, no, PAGE_IS_PRESENT | PAGE_IS_SWAPPED, sharedObject, false);
    }

    /** The guard pages of madvise(2) MADV_GUARD_INSTALL (Linux 6.13), as pairs; empty when the kernel tells none. */
    public long[] guarded(long start, long end) {
        return scan(start, end, 0, PAGE_IS_GUARD, false, true);
    }

    @Override
    public void close() {
        pagemap.close();
    }

    private long[] scan(long start, long end, long no, long any, boolean sharedObject, boolean guards) {
        while (true) {
            Method method = forced != null ? forced : best;
            count = 0;
            long error = switch (method) {
                case SCAN_WITH_GUARDS -> scanBy(start, end, guards ? 0 : no | PAGE_IS_GUARD, any);
                case SCAN -> guards ? 0 : scanBy(start, end, no, any);
                case PAGEMAP -> {
                    walk(start, end, sharedObject, guards);
                    yield 0;
                }
            };
            if (error == 0) {
                return Arrays.copyOf(found, count);
            }
            if (forced != null || !stepDown(method, error)) {
                throw failure(
                        "PAGEMAP_SCAN of process " + pid + " at 0x" + Long.toHexString(start) + "-0x"
                                + Long.toHexString(end),
                        (int) -error);
            }
        }
    }

    /** Takes the next older method when the kernel does not know this one. */
    private static boolean stepDown(Method method, long error) {
        if (method == Method.SCAN_WITH_GUARDS && error == -Errno.EINVAL) {
            best = Method.SCAN;
            return true;
        }
        if (method != Method.PAGEMAP && error == -Errno.ENOTTY) {
            best = Method.PAGEMAP;
            return true;
        }
        return false;
    }

    private long scanBy(long start, long end, long no, long any) {
        long from = start;
        while (from < end) {
            argument.putLong(0, ARGUMENT)
                    .putLong(8, 0)
                    .putLong(16, from)
                    .putLong(24, end)
                    .putLong(32, 0)
                    .putLong(40, regionsAddress)
                    .putLong(48, REGIONS)
                    .putLong(56, 0)
                    .putLong(64, no)
                    .putLong(72, no)
                    .putLong(80, any)
                    .putLong(88, any);
            long got = Libc.call(SystemCall.IOCTL, pagemap.value(), PAGEMAP_SCAN, argumentAddress);
            if (got == -Errno.EINTR) {
                continue;
            }
            if (got < 0) {
                return got;
            }
            for (int i = 0; i < got; i++) {
                add(regions.getLong(i * REGION), regions.getLong(i * REGION + 8));
            }
            long walked = argument.getLong(32);
            if (walked <= from) {
                return -Errno.EIO;
            }
            from = walked;
        }
        return 0;
    }

    private void walk(long start, long end, boolean sharedObject, boolean guards) {
        long page = start >>> PAGE_SHIFT;
        long last = end + (1 << PAGE_SHIFT) - 1 >>> PAGE_SHIFT;
        int room = regions.capacity() / 8;
        while (page < last) {
            long wanted = Math.min(room, last - page) * 8;
            long got = Libc.call(SystemCall.PREAD64, pagemap.value(), regionsAddress, wanted, page * 8);
            if (got == -Errno.EINTR) {
                continue;
            }
            if (got < 8) {
                int errno = got == 0 ? Errno.ESRCH : (int) -got;
                throw failure(
                        "reading pagemap of process " + pid + " at 0x" + Long.toHexString(page << PAGE_SHIFT), errno);
            }
            for (int i = 0; i + 8 <= got; i += 8, page++) {
                long entry = regions.getLong(i);
                boolean guard = (entry & PM_GUARD) != 0;
                boolean content = (entry & (PM_PRESENT | PM_SWAP)) != 0 && (sharedObject || (entry & PM_FILE) == 0);
                if (guards ? guard : content && !guard) {
                    add(page << PAGE_SHIFT, page + 1 << PAGE_SHIFT);
                }
            }
        }
    }

    private void add(long start, long end) {
        if (count > 0 && found[count - 1] == start) {
            found[count - 1] = end;
            return;
        }
        if (count == found.length) {
            found = Arrays.copyOf(found, 2 * count);
        }
        found[count++] = start;
        found[count++] = end;
    }

    private RuntimeException failure(String what, int errno) {
        return errno == Errno.ESRCH ? new NoSuchProcessException(pid, what) : new KernelException(what, errno);
    }
}
