package io.stasis.image.log;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each way to tamper with a log is named, with the record. */
class LogAuditTest {
    private static final int HEADER = 16;

    @TempDir
    Path directory;

    private Path file;
    private byte[] start;
    private List<byte[]> frames;

    /** Five records, each a frame of its own. */
    @BeforeEach
    void aLog() throws IOException {
        file = directory.resolve("events.log");
        try (EventLog log = EventLog.open(file)) {
            for (int i = 1; i <= 5; i++) {
                log.append(draft(i));
            }
        }
        byte[] bytes = Files.readAllBytes(file);
        start = Arrays.copyOf(bytes, HEADER);
        frames = new ArrayList<>();
        for (int at = HEADER; at < bytes.length; ) {
            int length = HEADER
                    + ByteBuffer.wrap(bytes, at, 4)
                            .order(ByteOrder.LITTLE_ENDIAN)
                            .getInt();
            frames.add(Arrays.copyOfRange(bytes, at, at + length));
            at += length;
        }
    }

    private static EventLog.Draft draft(int number) {
        return new EventLog.Draft("process|host/1@1", number, 0, "t.1", new byte[] {(byte) number, 7, 7, 7});
    }

    private List<String> findings() throws IOException {
        var bytes = new ByteArrayOutputStream();
        bytes.write(start);
        for (byte[] frame : frames) {
            bytes.write(frame);
        }
        Files.write(file, bytes.toByteArray());
        return LogAudit.findings(file);
    }

    @Test
    void aLogThatNobodyTouchedIsRight() throws IOException {
        assertThat(findings()).isEmpty();
    }

    @Test
    void aRemovedRecordIsNamed() throws IOException {
        frames.remove(2);
        assertThat(findings())
                .contains("record 3 is missing: it was removed")
                .noneMatch(finding -> finding.contains("altered"));
        frames.remove(2);
        assertThat(findings()).contains("records 3 to 4 are missing: they were removed");
    }

    @Test
    void aMovedRecordIsNamed() throws IOException {
        Collections.swap(frames, 1, 3);
        assertThat(findings())
                .contains(
                        "record 3 of process|host/1@1 stands behind record 4: it was moved",
                        "record 2 of process|host/1@1 stands behind record 4: it was moved");
    }

    @Test
    void aRecordThatWasPutInIsNamed() throws IOException {
        frames.add(3, frames.get(1));
        assertThat(findings()).contains("record 2 of process|host/1@1 is there more than once: one was put in");
    }

    /** With the checksums of its frame made anew, so that only its hash tells. */
    @Test
    void anAlteredRecordIsNamed() throws IOException {
        byte[] frame = frames.get(2);
        frame[frame.length - 32 - 2] ^= 1;
        assertThat(findings())
                .anyMatch(finding -> finding.startsWith("record 3 of process|host/1@1 was altered"))
                .hasSize(1);
        ByteBuffer header = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        header.putInt(8, crc(frame, HEADER, frame.length - HEADER)).putInt(12, crc(frame, 0, 12));
        assertThat(findings())
                .anyMatch(finding -> finding.startsWith("record 3 of process|host/1@1 was altered"))
                .hasSize(1);
    }

    private static int crc(byte[] bytes, int from, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, from, length);
        return (int) crc.getValue();
    }

    @Test
    void aCutOffRecordIsToldWithTheOneBeforeIt() throws IOException {
        frames.set(4, Arrays.copyOf(frames.get(4), 30));
        assertThat(findings()).containsExactly("it is cut off after record 4");
    }

    /** The whole log was written anew without an event: every checksum and hash is right. */
    @Test
    void aForgedLogIsFoundByTheNumbersOfItsEvents() {
        Path forged = directory.resolve("forged.log");
        try (EventLog log = EventLog.open(forged)) {
            log.append(List.of(draft(1), draft(2), draft(4), draft(5)));
        }
        assertThat(LogAudit.findings(forged))
                .containsExactly("record 3 of process|host/1@1 is its event 4 and follows its event 2: a record was "
                        + "removed, moved or put in");
    }
}
