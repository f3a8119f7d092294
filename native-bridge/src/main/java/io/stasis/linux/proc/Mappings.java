package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The virtual memory areas of a process: {@code /proc/P/smaps} and {@code /proc/P/maps}, see proc_pid_smaps(5).
 *
 * <p>Only smaps tells the VmFlags, and it walks all page tables for its counters. The PROCMAP_QUERY ioctl (Linux 6.11)
 * is no way around: of the flags it gives read, write, exec and shared only, as maps does.
 *
 * <p>A zombie has none. The kernel escapes nothing but line feeds, as {@code \012}; a file whose name really holds these
 * four characters is taken for one with a line feed. A name that ends in " (deleted)" is looked up to tell a deleted file
 * from one that is called so.
 */
public final class Mappings {
    private Mappings() {}

    /** All areas, ascending, with VmFlags and resident size. */
    public static List<MappingInfo> read(Pid pid) {
        return parse(Procfs.read(pid, Procfs.file(pid, "smaps")));
    }

    /** All areas, ascending, without VmFlags and resident size: no page table is walked. */
    public static List<MappingInfo> readMaps(Pid pid) {
        return parse(Procfs.read(pid, Procfs.file(pid, "maps")));
    }

    static List<MappingInfo> parse(ProcText text) {
        List<MappingInfo> areas = new ArrayList<>();
        MappingInfo area = null;
        String vmFlags = "";
        long rss = -1;
        while (!text.atEnd()) {
            byte first = text.peek();
            if (first >= 'A' && first <= 'Z') {
                if (text.startsWith("Rss:")) {
                    text.position += 4;
                    rss = text.decimal();
                } else if (text.startsWith("VmFlags:")) {
                    text.position += 8;
                    vmFlags = flags(text.restOfLine());
                    continue;
                }
                text.skipLine();
            } else {
                if (area != null) {
                    areas.add(complete(area, vmFlags, rss));
                }
                area = header(text);
                vmFlags = "";
                rss = -1;
            }
        }
        if (area != null) {
            areas.add(complete(area, vmFlags, rss));
        }
        // Only now, as the look-up uses the buffer of the text.
        for (int i = 0; i < areas.size(); i++) {
            if (areas.get(i).path().endsWith(Deleted.SUFFIX)) {
                areas.set(i, resolve(areas.get(i)));
            }
        }
        return areas;
    }

    private static final String[] COMMON_FLAGS = {
        "rd mr mw me", "rd ex mr mw me", "rd wr mr mw me ac", "rd wr mr mw me", "mr mw me", "rd wr mr mw me gd ac"
    };

    private static String flags(String text) {
        for (String common : COMMON_FLAGS) {
            if (common.equals(text)) {
                return common;
            }
        }
        return text;
    }

    private static MappingInfo header(ProcText text) {
        long start = text.hex();
        text.position++;
        long end = text.hex();
        text.skipBlanks();
        int p = text.position;
        byte[] b = text.bytes;
        boolean read = b[p] == 'r';
        boolean write = b[p + 1] == 'w';
        boolean exec = b[p + 2] == 'x';
        boolean shared = b[p + 3] == 's';
        text.position += 4;
        long offset = text.hex();
        int major = (int) text.hex();
        text.position++;
        int minor = (int) text.hex();
        long inode = text.decimal();
        text.skipBlanks();
        int pathStart = text.position;
        int pathEnd = text.lineEnd();
        text.position = Math.min(pathEnd + 1, text.length);
        String path = pathStart == pathEnd ? "" : unescape(b, pathStart, pathEnd);
        return new MappingInfo(start, end, read, write, exec, shared, offset, major, minor, inode, path, false, "", -1);
    }

    private static String unescape(byte[] bytes, int start, int end) {
        byte[] plain = new byte[end - start];
        int length = 0;
        for (int i = start; i < end; i++) {
            if (bytes[i] == '\\' && i + 3 < end && bytes[i + 1] == '0' && bytes[i + 2] == '1' && bytes[i + 3] == '2') {
                plain[length++] = '\n';
                i += 3;
            } else {
                plain[length++] = bytes[i];
            }
        }
        return new String(plain, 0, length, StandardCharsets.UTF_8);
    }

    private static MappingInfo complete(MappingInfo m, String vmFlags, long rss) {
        return rss < 0 && vmFlags.isEmpty() ? m : with(m, m.path(), false, vmFlags, rss);
    }

    private static MappingInfo resolve(MappingInfo m) {
        if (Deleted.isRealName(m.path(), m.inode())) {
            return m;
        }
        return with(m, Deleted.strip(m.path()), true, m.vmFlags(), m.rssKb());
    }

    private static MappingInfo with(MappingInfo m, String path, boolean deleted, String vmFlags, long rss) {
        return new MappingInfo(
                m.start(),
                m.end(),
                m.read(),
                m.write(),
                m.exec(),
                m.shared(),
                m.offset(),
                m.devMajor(),
                m.devMinor(),
                m.inode(),
                path,
                deleted,
                vmFlags,
                rss);
    }
}
