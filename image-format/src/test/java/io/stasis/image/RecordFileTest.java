package io.stasis.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.OpenDescription;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.SystemVObject;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RecordFileTest {
    private Path file;

    @BeforeEach
    @BeforeTry
    void nameFile() throws IOException {
        file = Files.createTempFile("stasis", ".record");
        Files.delete(file);
    }

    @AfterEach
    @AfterTry
    void removeFile() throws IOException {
        Files.deleteIfExists(file);
    }

    private static ComputationImage computation(List<byte[]> contents) {
        FileReference fifo = new FileReference("/tmp/fifo-é-\uD83D\uDE00", 1, 2, 3, 4, -5);
        return new ComputationImage(
                7,
                new ArrayList<>(List.of(7, 8, 9)),
                List.of(new ComputationImage.Zombie(
                        new ProcessImage.Identity(10, 7, 7, 7, 17, 99, "gone"),
                        256,
                        new int[] {0, 1, -1, Integer.MIN_VALUE},
                        new int[0])),
                Arrays.asList(
                        new OpenDescription.PipeEnd(1, 0),
                        new OpenDescription.OpenFile(2, fifo, Long.MIN_VALUE),
                        new OpenDescription.External(0, 1, "pipe:[5]")),
                contents.stream()
                        .map(bytes -> new ComputationImage.Pipe(fifo, 65536, bytes, new int[] {bytes.length}))
                        .toList(),
                List.of(),
                List.of(),
                List.of(),
                List.of(new ComputationImage.SignalOwner(1, 2, 3, 4, true)),
                List.of(new ComputationImage.NamelessFile(fifo, 5, -1, true, 15, "alpha/file-0.pages")),
                List.of(new ComputationImage.Segment(0, true, 32769, 0x4d2, 4097, 01600, 5, -1)),
                List.of(new ComputationImage.FileLock(1, 7, "POSIX", true, Long.MAX_VALUE, 0)),
                List.of(
                        new SystemVObject.SemaphoreSet(3, -1, 0, 5, 0640, true, new int[] {1, 0}, new int[] {7, 0}),
                        new SystemVObject.MessageQueue(0, 9, 0, 5, 0600, 16384, contents, 7, 0)));
    }

    private void write(byte[] payload) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(20 + payload.length).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put("STASISR1".getBytes()).putInt(1).putInt(payload.length).put(payload);
        bytes.putInt(Crc32c.of(bytes.array(), 0, 16 + payload.length));
        Files.write(file, bytes.array());
    }

    @Property(tries = 50)
    void aTreeIsReadBackWhateverListsItHasInMemory(@ForAll @Size(max = 4) List<byte[]> contents) {
        ComputationImage written = computation(contents);
        FileSummary summary = RecordFile.write(file, written);
        assertThat(RecordFile.read(file, ComputationImage.class))
                .usingRecursiveComparison()
                .isEqualTo(written);
        assertThat(FileSummary.of(file)).isEqualTo(summary);
    }

    @Property(tries = 1000)
    void anyBytesWithARightChecksumAreAnsweredInOneSentence(@ForAll @Size(max = 60) byte[] payload) throws IOException {
        write(payload);
        Throwable thrown = catchThrowable(() -> RecordFile.read(file, ComputationImage.class));
        assertThat(thrown).isInstanceOf(ImageException.class);
        assertThat(thrown.getMessage()).contains(file.toString()).doesNotContain("\n");
    }

    /** One byte of a real record altered and the checksum made right: another record, or a refusal. */
    @Property(tries = 1000)
    void anAlteredRecordWithARightChecksumIsReadOrRefused(@ForAll int where, @ForAll byte value) throws IOException {
        RecordFile.write(file, computation(List.of(new byte[] {1, 2, 3})));
        byte[] bytes = Files.readAllBytes(file);
        byte[] payload = Arrays.copyOfRange(bytes, 16, bytes.length - 4);
        payload[Math.floorMod(where, payload.length)] = value;
        write(payload);
        Throwable thrown = catchThrowable(() -> RecordFile.read(file, ComputationImage.class));
        if (thrown != null) {
            assertThat(thrown).isInstanceOf(ImageException.class);
        }
    }

    /** Class ids are the registered number and 2; lengths of two thousand million follow. */
    @Test
    void claimedLengthsMakeNoObjects() throws IOException {
        byte[] huge = {-1, -1, -1, -1, 7};
        List<Class<?>> arrays = List.of(byte[].class, int[].class, long[].class);
        List<Integer> ids = Stream.concat(
                        Stream.of(10), arrays.stream().map(type -> 20 + RecordTypes.TYPES.indexOf(type)))
                .toList();
        for (int id : ids) {
            byte[] payload = new byte[40];
            payload[0] = (byte) (id + 2);
            System.arraycopy(huge, 0, payload, 1, huge.length);
            write(payload);
            assertThatThrownBy(() -> RecordFile.read(file, Object.class))
                    .isInstanceOf(ImageException.class)
                    .hasMessageContaining("a length of");
        }
        // A FileReference, whose first field is a text of as many characters that are no ASCII.
        byte[] text = new byte[40];
        text[0] = (byte) (20 + RecordTypes.TYPES.indexOf(FileReference.class) + 2);
        text[1] = (byte) 0xff;
        Arrays.fill(text, 2, 5, (byte) 0xff);
        text[5] = 7;
        write(text);
        assertThatThrownBy(() -> RecordFile.read(file, Object.class)).isInstanceOf(ImageException.class);
    }

    @Test
    void nestingWithoutEndIsRefused() throws IOException {
        byte[] payload = new byte[100_000];
        for (int i = 0; i < payload.length; i += 2) {
            payload[i] = 12; // a list
            payload[i + 1] = 1; // of one element
        }
        write(payload);
        assertThatThrownBy(() -> RecordFile.read(file, Object.class)).isInstanceOf(ImageException.class);
        // The reader is as good as new.
        Files.delete(file);
        RecordFile.write(file, 5);
        assertThat(RecordFile.read(file, Integer.class)).isEqualTo(5);
    }

    @Test
    void aRecordOfAnotherKindIsRefused() {
        RecordFile.write(file, new ProcessImage.Limit(1, 2, 3));
        assertThatThrownBy(() -> RecordFile.read(file, ComputationImage.class))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("holds no ComputationImage");
    }

    @Test
    void aClassWithoutANumberIsNotWritten() {
        assertThatThrownBy(() -> RecordFile.write(file, new StringBuilder("x")))
                .isInstanceOf(ImageWriteException.class)
                .hasMessageContaining("StringBuilder");
        assertThat(file).doesNotExist();
    }

    @Test
    void aNewerFormatIsRefusedWithBothVersions() throws IOException {
        RecordFile.write(file, 5);
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(8, 2);
        bytes.putInt(bytes.capacity() - 4, Crc32c.of(bytes.array(), 0, bytes.capacity() - 4));
        Files.write(file, bytes.array());
        assertThatThrownBy(() -> RecordFile.read(file, Integer.class))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("image format 2")
                .hasMessageContaining("up to 1");
    }

    @Test
    void aLargeRecordIsReadBack() {
        byte[] contents = new byte[5 << 20];
        Arrays.fill(contents, (byte) 3);
        RecordFile.write(file, computation(List.of(contents)));
        assertThat(RecordFile.read(file, ComputationImage.class)
                        .pipes()
                        .getFirst()
                        .contents())
                .isEqualTo(contents);
    }
}
