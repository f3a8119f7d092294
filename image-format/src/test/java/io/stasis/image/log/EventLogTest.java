package io.stasis.image.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.stasis.image.FileSummary;
import io.stasis.image.ImageException;
import io.stasis.image.ImageWriteException;
import io.stasis.image.log.EventLog.Draft;
import io.stasis.image.log.EventLog.Entry;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EventLogTest {
    private static final int HEADER = 16;

    @TempDir
    Path work;

    private Path file;

    @BeforeEach
    void nameFile() {
        file = work.resolve("events.log");
    }

    private static Draft draft(int number) {
        return new Draft("process|" + number, number, 1, "suspended.1", ("payload " + number).getBytes());
    }

    private void write(int records) {
        try (EventLog log = EventLog.open(file)) {
            IntStream.rangeClosed(1, records).forEach(i -> log.append(draft(i)));
        }
    }

    /** The frames of the file, without its header. */
    private List<byte[]> frames() throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        List<byte[]> frames = new ArrayList<>();
        for (int at = HEADER; at < bytes.capacity(); ) {
            int end = at + LogFrame.HEADER + bytes.getInt(at);
            frames.add(Arrays.copyOfRange(bytes.array(), at, end));
            at = end;
        }
        return frames;
    }

    private void rewrite(List<byte[]> frames) throws IOException {
        byte[] header = Arrays.copyOf(Files.readAllBytes(file), HEADER);
        Files.write(file, header);
        for (byte[] frame : frames) {
            Files.write(file, frame, StandardOpenOption.APPEND);
        }
    }

    private void isRefused(String... words) {
        assertThatThrownBy(() -> EventLog.openReadOnly(file).close())
                .isInstanceOf(ImageException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContainingAll(words);
        assertThatThrownBy(() -> EventLog.open(file).close()).isInstanceOf(ImageException.class);
    }

    @Test
    void everyFieldIsReadBackInOrder() {
        List<Entry> written;
        try (EventLog log = EventLog.open(file)) {
            written = log.append(List.of(draft(1), new Draft("é\uD83D\uDE00", -1, Integer.MIN_VALUE, "", new byte[0])));
            assertThat(log.head()).isEqualTo(written.getLast().chain());
        }
        try (EventLog log = EventLog.openReadOnly(file)) {
            assertThat(log.read(1)).usingRecursiveComparison().isEqualTo(written);
            assertThat(log.read(2)).hasSize(1);
            assertThat(log.recovered()).isEqualTo(new EventLog.Recovery(2, 0));
        }
    }

    @Test
    void theNumbersAndTheChainGoOnAfterOpeningAgain() {
        write(3);
        List<Entry> seen = new ArrayList<>();
        try (EventLog log = EventLog.open(file, seen::add)) {
            assertThat(seen).hasSize(3);
            assertThat(log.append(draft(4)).sequence()).isEqualTo(4);
        }
        assertThat(EventLog.openReadOnly(file).lastSequence()).isEqualTo(4);
    }

    @Test
    void theLogIsForItsOwnerOnly() throws IOException {
        write(1);
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
                .isEqualTo("rw-------");
    }

    @Test
    void aRemovedRecordIsNamed() throws IOException {
        write(4);
        List<byte[]> frames = frames();
        frames.remove(1);
        rewrite(frames);
        isRefused("record 3 of process|3", "does not follow record 1");
    }

    @Test
    void movedRecordsAreNamed() throws IOException {
        write(4);
        List<byte[]> frames = frames();
        frames.add(1, frames.remove(2));
        rewrite(frames);
        isRefused("record 3 of process|3", "does not follow record 1");
    }

    @Test
    void arecordFromAnotherLogIsNamed() throws IOException {
        write(3);
        List<byte[]> foreign = frames();
        Files.delete(file);
        write(3);
        List<byte[]> frames = frames();
        frames.set(1, foreign.get(1));
        rewrite(frames);
        isRefused("record 2 of process|2");
    }

    /** An altered record with its checksums made right: the chain tells. */
    @Test
    void anAlteredRecordIsNamedThoughItsChecksumsAreRight() throws IOException {
        write(3);
        List<byte[]> frames = frames();
        byte[] frame = frames.get(1);
        frame[frame.length - 32 - 1] ^= 1;
        CRC32C crc = new CRC32C();
        crc.update(frame, 16, frame.length - 16);
        ByteBuffer header =
                ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).putInt(8, (int) crc.getValue());
        crc.reset();
        crc.update(frame, 0, 12);
        header.putInt(12, (int) crc.getValue());
        rewrite(frames);
        isRefused("record 2 of process|2");
    }

    @Test
    void zeroesInTheMiddleAreNoTornTail() throws IOException {
        write(4);
        long size = Files.size(file);
        List<byte[]> frames = frames();
        Arrays.fill(frames.get(1), (byte) 0);
        rewrite(frames);
        isRefused("after record 1");
        assertThat(Files.size(file)).isEqualTo(size);
    }

    @Test
    void aTailThatTheFileSystemNeverFilledIsCut() throws IOException {
        write(2);
        long good = Files.size(file);
        Files.write(file, new byte[10_000], StandardOpenOption.APPEND);
        try (EventLog log = EventLog.openReadOnly(file)) {
            assertThat(log.recovered()).isEqualTo(new EventLog.Recovery(2, 10_000));
        }
        try (EventLog log = EventLog.open(file)) {
            assertThat(log.recovered()).isEqualTo(new EventLog.Recovery(2, 10_000));
            assertThat(log.append(draft(3)).sequence()).isEqualTo(3);
        }
        assertThat(Files.size(file)).isGreaterThan(good).isLessThan(good + 1000);
        EventLog.openReadOnly(file).close();
    }

    /** After a power loss the last pages of a file may read as zeros, in the middle of a frame or of its header. */
    @Test
    void aFileWhoseLastPagesWereNotWrittenIsCutAtTheFrameBefore() throws IOException {
        try (EventLog log = EventLog.open(file)) {
            for (int i = 1; i <= 200; i++) {
                log.append(draft(i));
            }
        }
        byte[] good = Files.readAllBytes(file);
        for (int from = 4096; from < good.length; from += 4096) {
            byte[] lost = good.clone();
            Arrays.fill(lost, from, lost.length, (byte) 0);
            Files.write(file, lost);
            try (EventLog log = EventLog.open(file)) {
                assertThat(log.size()).isLessThanOrEqualTo(from).isGreaterThan(from - 200);
                assertThat(log.size() + log.recovered().bytes()).isEqualTo(good.length);
            }
        }
    }

    @Test
    void aBatchSurvivesWholeOrNotAtAll() throws IOException {
        write(2);
        long before = Files.size(file);
        try (EventLog log = EventLog.open(file)) {
            log.append(List.of(draft(3), draft(4), draft(5)));
        }
        byte[] whole = Files.readAllBytes(file);
        for (int keep = (int) before; keep < whole.length; keep++) {
            Files.write(file, Arrays.copyOf(whole, keep));
            try (EventLog log = EventLog.open(file)) {
                assertThat(log.lastSequence()).isEqualTo(2);
                assertThat(log.recovered().bytes()).isEqualTo(keep - before);
            }
        }
    }

    @Test
    void anEmptyBatchLeavesTheLogAsItIs() {
        write(1);
        try (EventLog log = EventLog.open(file)) {
            assertThat(log.append(List.of())).isEmpty();
            assertThat(log.lastSequence()).isEqualTo(1);
        }
        assertThat(EventLog.openReadOnly(file).lastSequence()).isEqualTo(1);
    }

    @Test
    void aNameThatIsTooLongIsRefusedAndTheLogGoesOn() {
        try (EventLog log = EventLog.open(file)) {
            log.append(draft(1));
            assertThatThrownBy(() -> log.append(new Draft("x".repeat(70_000), 1, 1, "t", new byte[0])))
                    .isInstanceOf(ImageWriteException.class)
                    .hasMessageContaining("70000");
            log.append(draft(2));
        }
        assertThat(EventLog.openReadOnly(file).lastSequence()).isEqualTo(2);
    }

    @Test
    void whatIsAppendedByManyThreadsIsOneChain() throws Exception {
        try (EventLog log = EventLog.open(file);
                var threads = Executors.newFixedThreadPool(8)) {
            List<Callable<Integer>> writers = IntStream.range(0, 8)
                    .<Callable<Integer>>mapToObj(thread -> () -> {
                        for (int i = 0; i < 200; i++) {
                            log.append(List.of(draft(thread), draft(thread)));
                            if (i % 50 == 0) {
                                log.force();
                            }
                        }
                        return 0;
                    })
                    .toList();
            for (var done : threads.invokeAll(writers)) {
                done.get();
            }
        }
        try (EventLog log = EventLog.openReadOnly(file)) {
            assertThat(log.read(1))
                    .extracting(Entry::sequence)
                    .containsExactlyElementsOf(
                            LongStream.rangeClosed(1, 3200).boxed().toList());
        }
    }

    @Test
    void anInterruptedThreadDoesNotEndTheLog() throws Exception {
        try (EventLog log = EventLog.open(file)) {
            log.append(draft(1));
            Thread interrupted = Thread.ofPlatform().start(() -> {
                Thread.currentThread().interrupt();
                log.append(draft(2));
                log.force();
                if (Thread.currentThread().isInterrupted()) {
                    log.append(draft(3));
                }
            });
            interrupted.join();
            assertThat(log.append(draft(4)).sequence()).isEqualTo(4);
        }
        assertThat(EventLog.openReadOnly(file).lastSequence()).isEqualTo(4);
    }

    /** Interrupts arrive while others are in the middle of their calls. */
    @Test
    void interruptsAtAnyMomentLoseNothing() throws Exception {
        try (EventLog log = EventLog.open(file)) {
            Thread writer = Thread.ofPlatform().start(() -> {
                for (int i = 1; i <= 2000; i++) {
                    log.append(draft(i));
                }
            });
            Thread forcer = Thread.ofPlatform().start(() -> {
                for (int i = 1; i <= 20; i++) {
                    log.force();
                }
            });
            for (int i = 0; i < 1000 && (writer.isAlive() || forcer.isAlive()); i++) {
                writer.interrupt();
                forcer.interrupt();
                Thread.yield();
            }
            writer.join();
            forcer.join();
            assertThat(log.lastSequence()).isEqualTo(2000);
        }
        assertThat(EventLog.openReadOnly(file).lastSequence()).isEqualTo(2000);
    }

    @Test
    void aClosedLogSaysSo() {
        EventLog log = EventLog.open(file);
        log.close();
        assertThat(log.isOpen()).isFalse();
        assertThatThrownBy(() -> log.append(draft(1)))
                .isInstanceOf(ImageWriteException.class)
                .hasMessageContaining("closed");
    }

    @Test
    void aReaderFollowsAWriter() throws IOException {
        try (EventLog writer = EventLog.open(file)) {
            List<Long> seen = new ArrayList<>();
            writer.append(draft(1));
            try (EventLog reader = EventLog.openReadOnly(file, entry -> seen.add(entry.sequence()))) {
                writer.append(List.of(draft(2), draft(3)));
                reader.poll(entry -> seen.add(entry.sequence()));
                reader.poll(entry -> seen.add(entry.sequence()));
                writer.append(draft(4));
                reader.poll(entry -> seen.add(entry.sequence()));
                assertThat(seen).containsExactly(1L, 2L, 3L, 4L);
                assertThat(reader.head()).isEqualTo(writer.head());
            }
        }
    }

    @Test
    void aReaderWaitsForTheRestOfAFrame() throws IOException {
        write(2);
        byte[] whole = Files.readAllBytes(file);
        int second = HEADER + frames().getFirst().length;
        Files.write(file, Arrays.copyOf(whole, second));
        List<Long> seen = new ArrayList<>();
        try (EventLog reader = EventLog.openReadOnly(file, entry -> seen.add(entry.sequence()))) {
            for (int keep = second + 1; keep <= whole.length; keep++) {
                assertThat(seen).containsExactly(1L);
                Files.write(file, Arrays.copyOfRange(whole, keep - 1, keep), StandardOpenOption.APPEND);
                reader.poll(entry -> seen.add(entry.sequence()));
            }
            assertThat(seen).containsExactly(1L, 2L);
        }
    }

    @Test
    void aReaderThatFailsOverOneRecordGoesOnWithTheNext() {
        try (EventLog writer = EventLog.open(file);
                EventLog reader = EventLog.openReadOnly(file)) {
            writer.append(draft(1));
            assertThatThrownBy(() -> reader.poll(entry -> {
                        throw new IllegalStateException("no");
                    }))
                    .isInstanceOf(IllegalStateException.class);
            writer.append(draft(2));
            List<Long> seen = new ArrayList<>();
            reader.poll(entry -> seen.add(entry.sequence()));
            assertThat(seen).containsExactly(2L);
        }
    }

    @Test
    void aSliceKeepsTimesAndIsAChainOfItsOwn() {
        List<Entry> all;
        try (EventLog log = EventLog.open(file)) {
            all = IntStream.rangeClosed(1, 1500)
                    .mapToObj(i -> log.append(draft(i)))
                    .toList();
        }
        Path target = work.resolve("slice.log");
        EventLog.Slice slice = EventLog.writeSlice(target, all.subList(100, 1400));
        assertThat(FileSummary.of(target)).isEqualTo(slice.summary());
        try (EventLog log = EventLog.openReadOnly(target)) {
            assertThat(log.head()).isEqualTo(slice.head());
            List<Entry> entries = log.read(1);
            assertThat(entries).hasSize(1300);
            assertThat(entries.getFirst().sequence()).isEqualTo(1);
            assertThat(entries)
                    .usingRecursiveComparison()
                    .ignoringFields("sequence", "chain")
                    .isEqualTo(all.subList(100, 1400));
        }
    }

    @Test
    void aNewerFormatIsRefusedWithBothVersions() throws IOException {
        write(1);
        byte[] bytes = Files.readAllBytes(file);
        bytes[8] = 2;
        Files.write(file, bytes);
        isRefused("image format 2", "up to 1");
    }

    @Test
    void aMissingLogIsNamed() {
        assertThatThrownBy(() -> EventLog.openReadOnly(file))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContaining("ENOENT");
    }

    @Test
    void aLogIsReadAcrossTheEdgesOfWhatIsReadAtATime() {
        byte[] large = new byte[100_000];
        try (EventLog log = EventLog.open(file)) {
            for (int i = 1; i <= 20; i++) {
                log.append(new Draft("e", i, 0, "t", Arrays.copyOf(large, i % 3 == 0 ? 300_000 : 90_000 + i)));
            }
        }
        try (EventLog log = EventLog.openReadOnly(file)) {
            assertThat(log.lastSequence()).isEqualTo(20);
        }
    }
}
