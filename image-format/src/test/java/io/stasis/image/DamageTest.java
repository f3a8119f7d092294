package io.stasis.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.stasis.image.log.EventLog;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.ProcessImage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import net.jqwik.api.Assume;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterProperty;
import net.jqwik.api.lifecycle.BeforeProperty;

/** Whatever is written is read back, and any flipped bit and any truncation is found. */
class DamageTest {
    private Path directory;
    private int files;

    @BeforeProperty
    void makeDirectory() throws IOException {
        directory = Files.createTempDirectory("stasis-damage");
    }

    @AfterProperty
    void removeDirectory() throws IOException {
        try (var all = Files.walk(directory)) {
            for (Path path : all.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    private Path newFile() {
        return directory.resolve("file" + files++);
    }

    private static Path flip(Path file, int bit) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        int at = Math.floorMod(bit, bytes.length * 8);
        bytes[at / 8] ^= (byte) (1 << at % 8);
        Files.write(file, bytes);
        return file;
    }

    private static Path cut(Path file, int length) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        Files.write(file, java.util.Arrays.copyOf(bytes, Math.floorMod(length, bytes.length)));
        return file;
    }

    private Path record(String path, long number) {
        Path file = newFile();
        RecordFile.write(file, new FileReference(path, number, number + 1, 2, 3, 4));
        return file;
    }

    @Property(tries = 200)
    void aRecordIsReadBack(@ForAll String path, @ForAll long number) {
        assertThat(RecordFile.read(record(path, number), FileReference.class))
                .isEqualTo(new FileReference(path, number, number + 1, 2, 3, 4));
    }

    @Property(tries = 200)
    void aFlippedBitInARecordIsFound(@ForAll String path, @ForAll int bit) throws IOException {
        Path file = flip(record(path, 7), bit);
        assertThatThrownBy(() -> RecordFile.read(file, FileReference.class)).isInstanceOf(ImageException.class);
    }

    @Property(tries = 100)
    void aCutRecordIsFound(@ForAll String path, @ForAll int length) throws IOException {
        Path file = cut(record(path, 7), length);
        assertThatThrownBy(() -> RecordFile.read(file, FileReference.class)).isInstanceOf(ImageException.class);
    }

    private Path pages(List<Integer> runs) {
        Path file = newFile();
        Random random = new Random(1);
        try (PageFile.Writer writer = PageFile.create(file)) {
            long address = 0x1000;
            for (int pages : runs) {
                byte[] bytes = new byte[pages * PageFile.PAGE];
                random.nextBytes(bytes);
                ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length);
                buffer.put(bytes).flip();
                writer.append(address, buffer);
                address += bytes.length + PageFile.PAGE;
            }
            FileSummary summary = writer.finish();
            assertThat(PrivateFiles.summarize(file)).isEqualTo(summary);
        }
        return file;
    }

    private static void readAll(Path file) {
        try (PageFile pages = PageFile.open(file)) {
            pages.verify();
        }
    }

    @Property(tries = 50)
    void pagesAreReadBack(@ForAll @Size(max = 5) List<@IntRange(min = 1, max = 4) Integer> runs) {
        Path file = pages(runs);
        try (PageFile pages = PageFile.open(file)) {
            pages.verify();
            assertThat(pages.runs()).extracting(PageFile.Run::pages).isEqualTo(runs);
        }
    }

    @Property(tries = 300)
    void aFlippedBitInAPageFileIsFound(
            @ForAll @Size(max = 3) List<@IntRange(min = 1, max = 2) Integer> runs, @ForAll int bit) throws IOException {
        Path file = flip(pages(runs), bit);
        assertThatThrownBy(() -> readAll(file)).isInstanceOf(ImageException.class);
    }

    @Property(tries = 100)
    void aCutPageFileIsFound(@ForAll @Size(max = 3) List<@IntRange(min = 1, max = 2) Integer> runs, @ForAll int length)
            throws IOException {
        Path file = cut(pages(runs), length);
        assertThatThrownBy(() -> readAll(file)).isInstanceOf(ImageException.class);
    }

    private Path log(List<String> entities) {
        Path file = newFile();
        try (EventLog log = EventLog.open(file)) {
            long number = 0;
            for (String entity : entities) {
                log.append(new EventLog.Draft(entity, ++number, 1, "type", new byte[] {1, 2, 3}));
            }
        }
        return file;
    }

    @Property(tries = 100)
    void aLogIsReadBack(@ForAll @Size(max = 20) List<String> entities) {
        try (EventLog log = EventLog.openReadOnly(log(entities))) {
            assertThat(log.read(1)).extracting(EventLog.Entry::entity).isEqualTo(entities);
            assertThat(log.lastSequence()).isEqualTo(entities.size());
        }
    }

    @Property(tries = 300)
    void aFlippedBitInALogIsFound(@ForAll @Size(min = 1, max = 5) List<String> entities, @ForAll int bit)
            throws IOException {
        Path file = log(entities);
        try (EventLog intact = EventLog.openReadOnly(file)) {
            Assume.that(intact.lastSequence() > 0);
        }
        flip(file, bit);
        assertThatThrownBy(() -> EventLog.openReadOnly(file).close()).isInstanceOf(ImageException.class);
    }

    @Property(tries = 200)
    void aTornTailOfALogIsCutAndReported(@ForAll @Size(min = 1, max = 5) List<String> entities, @ForAll int length)
            throws IOException {
        Path file = log(entities);
        long whole = Files.size(file);
        int keep = 16 + Math.floorMod(length, (int) whole - 16);
        Files.write(file, java.util.Arrays.copyOf(Files.readAllBytes(file), keep));
        try (EventLog log = EventLog.open(file)) {
            assertThat(log.lastSequence()).isLessThan(entities.size());
            assertThat(log.read(1)).extracting(EventLog.Entry::entity).isEqualTo(entities.subList(0, (int)
                    log.lastSequence()));
            assertThat(log.size() + log.recovered().bytes()).isEqualTo(keep);
            log.append(new EventLog.Draft("next", 1, 0, "type", new byte[0]));
        }
        EventLog.openReadOnly(file).close();
    }

    private Path generation() {
        ImageDirectory images = ImageDirectory.create(directory.resolve("images" + files++));
        try (ImageDirectory.Staging staging = images.begin()) {
            FileSummary summary =
                    RecordFile.write(staging.host("host").resolve("tree.record"), new ProcessImage.Limit(1, 2, 3));
            byte[] head = EventLog.writeSlice(staging.path().resolve("events.log"), List.of())
                    .head();
            FileSummary log = PrivateFiles.summarize(staging.path().resolve("events.log"));
            return staging.commit(new Manifest(
                            FormatVersion.CURRENT,
                            "0.1.0",
                            "test",
                            staging.number(),
                            null,
                            "2026-01-01T00:00:00Z",
                            "6.1",
                            "amd64",
                            Map.of("kill", "false"),
                            List.of(new Manifest.HostEntry("host", List.of(1), List.of())),
                            List.of(
                                    Manifest.FileEntry.of("host/tree.record", summary.size(), summary.crc32c()),
                                    Manifest.FileEntry.of("events.log", log.size(), log.crc32c())),
                            java.util.HexFormat.of().formatHex(head),
                            1,
                            summary.size()))
                    .path();
        }
    }

    @Property(tries = 20)
    void aGenerationVerifies(@ForAll @IntRange(max = 1) int ignored) {
        assertThat(ImageVerifier.verify(generation())).isEmpty();
    }

    @Property(tries = 200)
    void aFlippedBitInAManifestIsFound(@ForAll int bit) throws IOException {
        Path generation = generation();
        flip(generation.resolve(Manifest.NAME), bit);
        assertThat(ImageVerifier.verify(generation)).isNotEmpty();
    }

    @Property(tries = 20)
    void amissingAndAnExtraFileAreFound(@ForAll boolean missing) throws IOException {
        Path generation = generation();
        Path file = generation.resolve("host/tree.record");
        if (missing) {
            Files.delete(file);
            assertThat(ImageVerifier.verify(generation))
                    .singleElement()
                    .asString()
                    .contains("tree.record is missing");
        } else {
            Files.createFile(generation.resolve("extra"));
            assertThat(ImageVerifier.verify(generation))
                    .singleElement()
                    .asString()
                    .contains("does not belong");
        }
    }
}
