package io.stasis.engine.capture;

import io.stasis.image.PageFile;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** An open file read page by page where it has content: holes are found by lseek(2) and not read. */
final class SparseFile implements PageWriter.Source {
    private static final int SEEK_DATA = 3;
    private static final int SEEK_HOLE = 4;
    private static final long PAGE = PageFile.PAGE;

    private final Fd file;
    private final long size;

    /** @param file a description of our own, whose offset moves */
    SparseFile(Fd file, long size) {
        this.file = file;
        this.size = size;
    }

    /** What is not a hole, in whole pages: {start, end, start}, ascending. */
    List<long[]> ranges() {
        List<long[]> ranges = new ArrayList<>();
        long at = 0;
        while (at < size) {
            long data = Libc.call(SystemCall.LSEEK, file.value(), at, SEEK_DATA);
            if (data == -Errno.ENXIO) {
                break; // nothing but a hole follows
            }
            Libc.check(data, "lseek to the next data of a file without a name");
            long hole = Libc.check(
                    Libc.call(SystemCall.LSEEK, file.value(), data, SEEK_HOLE),
                    "lseek to the next hole of a file without a name");
            // Never back: on some file systems blocks are smaller than pages.
            long start = Math.max(at, data & -PAGE);
            long end = Math.min(hole, size) + PAGE - 1 & -PAGE;
            if (start < end) {
                ranges.add(new long[] {start, end, start});
            }
            at = Math.max(end, at + PAGE);
        }
        return ranges;
    }

    @Override
    public void read(long[] ranges, ByteBuffer target) {
        for (int i = 0; i < ranges.length; i += 2) {
            read(ranges[i], (int) (ranges[i + 1] - ranges[i]), target);
        }
    }

    private void read(long offset, int length, ByteBuffer target) {
        int done = 0;
        while (done < length) {
            long got = Libc.check(
                    Libc.call(
                            SystemCall.PREAD64,
                            file.value(),
                            Libc.address(target) + target.position(),
                            length - done,
                            offset + done),
                    "read a file without a name");
            if (got == 0) {
                break;
            }
            done += (int) got;
            target.position(target.position() + (int) got);
        }
        while (done < length) {
            target.put((byte) 0);
            done++;
        }
    }
}
