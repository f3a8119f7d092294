package io.stasis.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PageFileTest {
    private static final int PAGE = PageFile.PAGE;

    @TempDir
    Path work;

    private static ByteBuffer pages(int count, int seed) {
        byte[] bytes = new byte[count * PAGE];
        new Random(seed).nextBytes(bytes);
        return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
    }

    private Path written(long... addresses) {
        Path file = work.resolve("1.pages");
        try (PageFile.Writer writer = PageFile.create(file)) {
            for (long address : addresses) {
                writer.append(address, pages(2, (int) (address >>> 12)));
            }
            writer.finish();
        }
        return file;
    }

    @Test
    void aNameThatLeadsOutOfTheGenerationIsRefused() {
        assertThat(PageFile.inside(work, "alpha/1.pages")).isEqualTo(work.resolve("alpha/1.pages"));
        for (String name : List.of("../1.pages", "alpha/../../1.pages", "/etc/passwd")) {
            assertThatThrownBy(() -> PageFile.inside(work, name))
                    .isInstanceOf(ImageException.class)
                    .hasMessageContaining(name);
        }
    }

    @Test
    void pagesLieAlignedWhereTheIndexSays() throws IOException {
        Path file = written(0x1000, 0x3000, 0x7ffffffff000L);
        byte[] bytes = Files.readAllBytes(file);
        try (PageFile read = PageFile.open(file)) {
            assertThat(read.runs())
                    .extracting(PageFile.Run::address)
                    .containsExactly(0x1000L, 0x3000L, 0x7ffffffff000L);
            for (PageFile.Run run : read.runs()) {
                assertThat(run.fileOffset() % PAGE).isZero();
                ByteBuffer expected = pages(2, (int) (run.address() >>> 12));
                assertThat(ByteBuffer.wrap(bytes, (int) run.fileOffset(), 2 * PAGE))
                        .isEqualTo(expected);
            }
            read.verify();
        }
    }

    @Test
    void aFileLargerThanOneReadIsSummedUpTheSameByOneThreadOrMore() throws IOException {
        Path file = work.resolve("large.pages");
        FileSummary summary;
        try (PageFile.Writer writer = PageFile.create(file)) {
            for (int i = 0; i < 40; i++) {
                writer.append(0x10000000L + ((long) i << 20), pages(256, i));
            }
            summary = writer.finish();
        }
        assertThat(FileSummary.of(file)).isEqualTo(summary);
        byte[] bytes = Files.readAllBytes(file);
        assertThat(Crc32c.of(bytes, 0, bytes.length)).isEqualTo(summary.crc32c());
        try (PageFile read = PageFile.open(file)) {
            read.verify();
        }
    }

    @Test
    void anEmptyFileHasNoRuns() {
        try (PageFile read = PageFile.open(written())) {
            assertThat(read.runs()).isEmpty();
            read.verify();
        }
    }

    @Test
    void pagesAreAppendedWholeAndInOrder() {
        try (PageFile.Writer writer = PageFile.create(work.resolve("1.pages"))) {
            writer.append(0x4000, pages(2, 1));
            assertThatThrownBy(() -> writer.append(0x5000, pages(1, 1))).isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> writer.append(0x6001, pages(1, 1))).isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> writer.append(0x6000, ByteBuffer.allocate(PAGE - 1)))
                    .isInstanceOf(IllegalArgumentException.class);
            writer.append(0x6000, pages(1, 1));
            writer.finish();
            assertThatThrownBy(() -> writer.append(0x7000, pages(1, 1))).isInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void aFileThatWasNotFinishedIsNoPageFile() {
        Path file = work.resolve("1.pages");
        try (PageFile.Writer writer = PageFile.create(file)) {
            writer.append(0x1000, pages(4, 1));
        }
        assertThatThrownBy(() -> PageFile.open(file))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContaining("footer");
    }

    @Test
    void damagedPagesAreNamedByAddressAndOffset() throws IOException {
        Path file = written(0x1000, 0x5000);
        byte[] bytes = Files.readAllBytes(file);
        bytes[3 * PAGE + 5] ^= 1;
        Files.write(file, bytes);
        try (PageFile read = PageFile.open(file)) {
            assertThatThrownBy(read::verify)
                    .isInstanceOf(ImageException.class)
                    .hasMessageContaining("0x5000")
                    .hasMessageContaining("offset 12288");
        }
    }

    @Test
    void aNewerFormatIsRefusedWithBothVersions() throws IOException {
        Path file = written(0x1000);
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(8, 7);
        int footer = bytes.capacity() - 64;
        bytes.putInt(footer + 28, Crc32c.of(bytes.array(), 0, PAGE));
        bytes.putInt(footer + 52, Crc32c.of(bytes.array(), footer, 52));
        Files.write(file, bytes.array());
        assertThatThrownBy(() -> PageFile.open(file))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("image format 7")
                .hasMessageContaining("up to 1");
    }

    /** Numbers that no checksum covers for a writer who makes the checksums right. */
    @Test
    void numbersInTheFooterAreNotTrusted() throws IOException {
        Path file = written(0x1000, 0x5000);
        byte[] good = Files.readAllBytes(file);
        int footer = good.length - 64;
        for (int field : new int[] {0, 8, 16}) {
            for (long value : new long[] {-1, 0, 1, 3, 1L << 31, 1L << 62, Long.MAX_VALUE, Long.MIN_VALUE}) {
                ByteBuffer bytes = ByteBuffer.wrap(good.clone()).order(ByteOrder.LITTLE_ENDIAN);
                bytes.putLong(footer + field, value);
                bytes.putInt(footer + 52, Crc32c.of(bytes.array(), footer, 52));
                Files.write(file, bytes.array());
                assertThatThrownBy(() -> PageFile.open(file)).isInstanceOf(ImageException.class);
            }
        }
    }

    @Test
    void runsThatOverlapAreRefused() throws IOException {
        Path file = written(0x1000, 0x5000);
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        int footer = bytes.capacity() - 64;
        int index = footer - 2 * 24;
        bytes.putLong(index + 24, 0x2000);
        bytes.putInt(footer + 24, Crc32c.of(bytes.array(), index, 2 * 24));
        bytes.putInt(footer + 52, Crc32c.of(bytes.array(), footer, 52));
        Files.write(file, bytes.array());
        assertThatThrownBy(() -> PageFile.open(file))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("entry 1");
    }

    @Test
    void aFullDiskIsNamedWithFileOffsetAndTheKernelsWord() throws IOException {
        Path full = Path.of("/dev/full");
        try (FileChannel channel = FileChannel.open(full, StandardOpenOption.WRITE)) {
            assertThatThrownBy(() -> PrivateFiles.writeFully(channel, pages(1, 1), 8192, full))
                    .isInstanceOf(ImageWriteException.class)
                    .hasMessage("cannot write at byte 8192 of /dev/full: ENOSPC (No space left on device); "
                            + "free some, or give another directory with --dir");
        }
    }

    @Test
    void aFileThatExistsIsNotWrittenOver() {
        Path file = written(0x1000);
        assertThatThrownBy(() -> PageFile.create(file))
                .isInstanceOf(ImageWriteException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContaining("EEXIST");
    }

    @Test
    void aMissingFileAndALinkAreRefused() throws IOException {
        Path missing = work.resolve("2.pages");
        assertThatThrownBy(() -> PageFile.open(missing))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining(missing + " is missing");
        Path link = Files.createSymbolicLink(work.resolve("3.pages"), written(0x1000));
        assertThatThrownBy(() -> PageFile.open(link))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("ELOOP");
    }

    /** A buffer larger than what one system call takes is written whole. */
    @Test
    void aLargeBufferIsWrittenWhole() throws IOException {
        Path file = work.resolve("large");
        byte[] bytes = new byte[(3 << 20) + 17];
        Arrays.fill(bytes, (byte) 7);
        try (FileChannel channel = PrivateFiles.create(file)) {
            PrivateFiles.writeFully(channel, ByteBuffer.wrap(bytes), 0, file);
        }
        assertThat(Files.readAllBytes(file)).isEqualTo(bytes);
        assertThat(List.of(FileSummary.of(file)))
                .containsExactly(new FileSummary(bytes.length, Crc32c.of(bytes, 0, bytes.length)));
    }
}
