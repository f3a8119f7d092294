package io.stasis.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.stasis.image.log.EventLog;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ImageVerifierTest {
    @TempDir
    Path work;

    private Path generation;

    @BeforeEach
    void commitGeneration() {
        generation = commit(null);
    }

    /** @param head what the manifest says is the log's last hash, null for the truth */
    private Path commit(String head) {
        List<Manifest.FileEntry> files = new ArrayList<>();
        try (var staging = ImageDirectory.create(work.resolve("images")).begin()) {
            Path host = staging.host("host-é");
            try (PageFile.Writer writer = PageFile.create(host.resolve("1.pages"))) {
                writer.append(0x1000, ByteBuffer.allocateDirect(3 * PageFile.PAGE));
                add(files, "host-é/1.pages", writer.finish());
            }
            add(files, "host-é/1.process", RecordFile.write(host.resolve("1.process"), 1));
            Path source = work.resolve("source.log");
            EventLog.Slice slice;
            try (EventLog log = EventLog.open(source)) {
                log.append(new EventLog.Draft("a", 1, 1, "t", new byte[10]));
                slice = EventLog.writeSlice(staging.path().resolve(ImageVerifier.LOG), log.read(1));
            }
            add(files, ImageVerifier.LOG, slice.summary());
            return staging.commit(new Manifest(
                            FormatVersion.CURRENT,
                            "0.1.0",
                            "name with \uFFFD and \"quotes\"",
                            staging.number(),
                            staging.number() - 1,
                            "2026-01-01T00:00:00Z",
                            "6.1",
                            "amd64",
                            Map.of("kill", "true"),
                            List.of(new Manifest.HostEntry("host-é", List.of(1), List.of())),
                            files,
                            head == null ? HexFormat.of().formatHex(slice.head()) : head,
                            1,
                            2))
                    .path();
        }
    }

    private static void add(List<Manifest.FileEntry> files, String name, FileSummary summary) {
        files.add(Manifest.FileEntry.of(name, summary.size(), summary.crc32c()));
    }

    private void finds(String... words) {
        assertThat(ImageVerifier.verify(generation)).singleElement().asString().contains(words);
    }

    private void alter(String name, int at) throws IOException {
        Path file = generation.resolve(name);
        byte[] bytes = Files.readAllBytes(file);
        bytes[Math.floorMod(at, bytes.length)] ^= 0x20;
        Files.write(file, bytes);
    }

    @Test
    void aWholeGenerationIsWell() {
        assertThat(ImageVerifier.verify(generation)).isEmpty();
    }

    @Test
    void damagedPagesAreNamedWithTheirAddress() throws IOException {
        alter("host-é/1.pages", 2 * PageFile.PAGE);
        finds("1.pages is damaged", "0x1000");
    }

    @Test
    void everyDamagedFileIsNamed() throws IOException {
        alter("host-é/1.pages", -1);
        alter("host-é/1.process", 17);
        alter("events.log", 100);
        assertThat(ImageVerifier.verify(generation)).hasSize(3).allMatch(finding -> finding.contains("is damaged"));
    }

    @Test
    void everyByteOfTheManifestCounts() throws IOException {
        byte[] good = Files.readAllBytes(generation.resolve(Manifest.NAME));
        for (int at = 0; at < good.length; at++) {
            for (int bit = 0; bit < 8; bit++) {
                byte[] bad = good.clone();
                bad[at] ^= (byte) (1 << bit);
                Files.write(generation.resolve(Manifest.NAME), bad);
                assertThat(ImageVerifier.verify(generation))
                        .as("byte %d bit %d", at, bit)
                        .isNotEmpty();
            }
        }
        for (int length = 0; length < good.length; length++) {
            Files.write(generation.resolve(Manifest.NAME), java.util.Arrays.copyOf(good, length));
            assertThat(ImageVerifier.verify(generation)).as("cut at %d", length).isNotEmpty();
        }
    }

    @Test
    void aLinkInPlaceOfAFileIsRefused() throws IOException {
        Path file = generation.resolve("host-é/1.process");
        Path outside = Files.move(file, work.resolve("outside"));
        Files.createSymbolicLink(file, outside);
        assertThat(ImageVerifier.verify(generation))
                .anyMatch(finding -> finding.contains("1.process is neither file nor directory"));
    }

    @Test
    void aLogThatEndsOtherwiseIsFound() {
        generation = commit("00".repeat(32));
        finds("events.log is damaged", "otherwise");
    }

    @Test
    void aNewerFormatIsRefusedWithBothVersions() throws IOException {
        Path manifest = generation.resolve(Manifest.NAME);
        Files.writeString(manifest, Files.readString(manifest).replaceFirst("\"format\" : 1", "\"format\" : 12"));
        finds("manifest.json has image format 12", "up to 1");
        assertThatThrownBy(() -> new ImageDirectory.Generation(1, generation).manifest())
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("image format 12");
    }

    @Test
    void aGenerationThatIsGoneIsAFinding() {
        assertThat(ImageVerifier.verify(work.resolve("gone")))
                .singleElement()
                .asString()
                .contains("is missing");
    }
}
