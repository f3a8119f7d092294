package io.stasis.image.log;

import io.stasis.image.ImageException;
import io.stasis.image.log.EventLog.Entry;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Names what is wrong with a log record by record, where {@link EventLog} stops at the first thing: which record was
 * removed, moved, put in or altered. Reads the whole file into memory.
 *
 * <p>Also a log whose checksums and chain were made anew is looked at: the events of an entity are numbered without gaps.
 */
public final class LogAudit {
    /** File header of a log, see {@link EventLog}. */
    private static final int HEADER = 16;

    private final List<String> findings = new ArrayList<>();
    private final List<Entry> entries = new ArrayList<>();

    private LogAudit() {}

    /** Sentences without the file's name, in the order of the log; empty when all records are right. */
    public static List<String> findings(Path file) {
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (IOException e) {
            throw ImageException.reading("read", file, e);
        }
        LogAudit audit = new LogAudit();
        audit.readAll(bytes);
        audit.order();
        audit.chain();
        audit.entities();
        return audit.findings;
    }

    private void readAll(byte[] bytes) {
        int at = HEADER;
        while (at < bytes.length) {
            long last = entries.isEmpty() ? 0 : entries.getLast().sequence();
            if (bytes.length - at < LogFrame.HEADER) {
                findings.add("it is cut off after record " + last);
                return;
            }
            ByteBuffer header = ByteBuffer.wrap(Arrays.copyOfRange(bytes, at, at + LogFrame.HEADER))
                    .order(ByteOrder.LITTLE_ENDIAN);
            if (!LogFrame.isHeader(header)) {
                findings.add("the frame behind record " + last + ", at byte " + at
                        + ", has an altered header; what follows cannot be read");
                return;
            }
            int length = LogFrame.bodyLength(header);
            at += LogFrame.HEADER;
            if (length > bytes.length - at) {
                findings.add("it is cut off after record " + last);
                return;
            }
            if (!LogFrame.read(header, Arrays.copyOfRange(bytes, at, at + length), entries::add)) {
                findings.add("a record in the frame behind record " + last + ", at byte " + at
                        + ", was altered so that it cannot be read");
            }
            at += length;
        }
    }

    private void order() {
        Set<Long> seen = new HashSet<>();
        long highest = 0;
        for (Entry entry : entries) {
            if (!seen.add(entry.sequence())) {
                findings.add(name(entry) + " is there more than once: one was put in");
            } else if (entry.sequence() < highest) {
                findings.add(name(entry) + " stands behind record " + highest + ": it was moved");
            }
            highest = Math.max(highest, entry.sequence());
        }
        long from = 0;
        for (long sequence = 1; sequence <= highest + 1; sequence++) {
            boolean missing = sequence <= highest && !seen.contains(sequence);
            if (missing && from == 0) {
                from = sequence;
            } else if (!missing && from != 0) {
                findings.add(
                        from == sequence - 1
                                ? "record " + from + " is missing: it was removed"
                                : "records " + from + " to " + (sequence - 1) + " are missing: they were removed");
                from = 0;
            }
        }
    }

    /** Each record against the hash that stands in the one before; only where nothing is missing between them. */
    private void chain() {
        LogFrame.Link before = LogFrame.Link.FIRST;
        for (Entry entry : entries) {
            if (entry.sequence() == before.sequence() + 1
                    && !Arrays.equals(entry.chain(), LogFrame.chain(entry, before))) {
                findings.add(name(entry) + " was altered, or record " + before.sequence() + " before it is forged: "
                        + "its hash is not that of its content and its predecessor");
            }
            before = LogFrame.Link.of(entry);
        }
    }

    private void entities() {
        Map<String, Long> last = new HashMap<>();
        for (Entry entry : entries) {
            if (entry.entitySequence() == 0) {
                continue; // no event of the entity's own
            }
            Long before = last.put(entry.entity(), entry.entitySequence());
            if (before != null && entry.entitySequence() != before + 1) {
                findings.add(name(entry) + " is its event " + entry.entitySequence() + " and follows its event "
                        + before + ": a record was removed, moved or put in");
            }
        }
    }

    private static String name(Entry entry) {
        return "record " + entry.sequence() + " of " + entry.entity();
    }
}
