package io.stasis.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ImageDirectoryTest {
    @TempDir
    Path work;

    private ImageDirectory images() {
        return ImageDirectory.create(work.resolve("images"));
    }

    static Manifest manifest(int generation) {
        return new Manifest(
                FormatVersion.CURRENT,
                "0.1.0",
                "test",
                generation,
                null,
                "2026-01-01T00:00:00Z",
                "6.1",
                "amd64",
                Map.of(),
                List.of(),
                List.of(),
                null,
                1,
                0);
    }

    private static ImageDirectory.Generation commit(ImageDirectory images) {
        try (var staging = images.begin()) {
            return staging.commit(manifest(staging.number()));
        }
    }

    private static List<String> names(ImageDirectory images) throws IOException {
        try (var entries = Files.list(images.path())) {
            return entries.map(entry -> entry.getFileName().toString()).sorted().toList();
        }
    }

    private static String mode(Path path) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }

    @Test
    void generationsAreNumberedAndLatestIsTheNewest() throws IOException {
        ImageDirectory images = images();
        commit(images);
        commit(images);
        assertThat(images.generations())
                .extracting(ImageDirectory.Generation::number)
                .containsExactly(1, 2);
        assertThat(images.latest().manifest().generation()).isEqualTo(2);
        assertThat(Files.readSymbolicLink(images.path().resolve("latest"))).isEqualTo(Path.of("0002"));
        assertThat(names(images)).containsExactly("0001", "0002", "latest");
    }

    @Test
    void whatIsWrittenIsForItsOwnerOnly() throws IOException {
        ImageDirectory images = images();
        try (var staging = images.begin()) {
            Path host = staging.host("a");
            RecordFile.write(host.resolve("1.process"), 1);
            assertThat(mode(staging.path())).isEqualTo("rwx------");
            staging.commit(manifest(1));
        }
        Path generation = images.latest().path();
        assertThat(mode(images.path())).isEqualTo("rwx------");
        assertThat(mode(generation)).isEqualTo("rwx------");
        assertThat(mode(generation.resolve("a"))).isEqualTo("rwx------");
        assertThat(mode(generation.resolve("a/1.process"))).isEqualTo("rw-------");
        assertThat(mode(generation.resolve("manifest.json"))).isEqualTo("rw-------");
    }

    @Test
    void withoutACommitNothingRemains() throws IOException {
        ImageDirectory images = images();
        try (var staging = images.begin()) {
            RecordFile.write(staging.host("a").resolve("1.process"), 1);
        }
        assertThat(names(images)).isEmpty();
        assertThatThrownBy(images::latest)
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("no complete generation");
    }

    @Test
    void aFailedCommitLeavesTheEarlierGenerations() throws IOException {
        ImageDirectory images = images();
        commit(images);
        try (var staging = images.begin()) {
            Files.createDirectory(staging.path().resolve("manifest.json"));
            assertThatThrownBy(() -> staging.commit(manifest(2)))
                    .isInstanceOf(ImageWriteException.class)
                    .hasMessageContaining("EEXIST");
        }
        assertThat(names(images)).containsExactly("0001", "latest");
        assertThat(commit(images).number()).isEqualTo(2);
    }

    @Test
    void twoCheckpointsIntoOneDirectoryDoNotMeet() throws IOException {
        ImageDirectory images = images();
        try (var second = images.begin();
                var third = images().begin()) {
            assertThat(third.number()).isEqualTo(second.number() + 1);
            third.commit(manifest(third.number()));
            assertThat(second.path()).exists();
            second.commit(manifest(second.number()));
        }
        assertThat(names(images)).containsExactly("0001", "0002", "latest");
        assertThat(Files.readSymbolicLink(images.path().resolve("latest"))).isEqualTo(Path.of("0002"));
    }

    @Test
    void whatADeadWriterLeftIsRemoved() throws IOException {
        ImageDirectory images = images();
        Path unlocked = Files.createDirectory(images.path().resolve(".0001.partial"));
        Files.createFile(unlocked.resolve(".lock"));
        Files.createFile(Files.createDirectory(unlocked.resolve("a")).resolve("1.pages"));
        Path old = Files.createDirectory(images.path().resolve(".0002.partial"));
        Files.setLastModifiedTime(old, FileTime.from(Instant.now().minusSeconds(3600)));
        try (var staging = images.begin()) {
            assertThat(staging.number()).isEqualTo(1);
            assertThat(old).doesNotExist();
            assertThat(staging.path().resolve("a")).doesNotExist();
        }
    }

    /** Another process holds the lock of its staging directory, also after this process has looked at it. */
    @Test
    void whatALivingWriterIsWritingStays() throws Exception {
        ImageDirectory images = images();
        Path staging = Files.createDirectory(images.path().resolve(".0001.partial"));
        Path lock = Files.createFile(staging.resolve(".lock"));
        Process other = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:+UseSerialGC",
                        "-cp",
                        System.getProperty("java.class.path"),
                        LockHolder.class.getName(),
                        lock.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try {
            assertThat(other.inputReader().readLine()).isEqualTo("locked");
            try (var mine = images.begin()) {
                assertThat(mine.number()).isEqualTo(2);
            }
            try (var mine = images.begin()) {
                assertThat(mine.number()).isEqualTo(2);
            }
            assertThat(staging).exists();
        } finally {
            other.destroyForcibly();
            assertThat(other.waitFor(30, TimeUnit.SECONDS)).isTrue();
        }
        try (var mine = images.begin()) {
            assertThat(mine.number()).isEqualTo(1);
        }
    }

    /** Locks a file until it is killed. */
    static final class LockHolder {
        public static void main(String[] arguments) throws Exception {
            try (FileChannel channel = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.WRITE)) {
                channel.lock();
                System.out.println("locked");
                System.in.read();
            }
        }
    }

    /** A look at the own staging directory must not give up its lock, as closing any descriptor of a file does. */
    @Test
    void anotherBeginningInTheSameProcessKeepsTheLock() throws Exception {
        ImageDirectory images = images();
        try (var mine = images.begin()) {
            images.begin().close();
            Process other = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin", "java")
                                    .toString(),
                            "-XX:+UseSerialGC",
                            "-cp",
                            System.getProperty("java.class.path"),
                            Beginner.class.getName(),
                            images.path().toString())
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            assertThat(other.inputReader().readLine()).isEqualTo("2");
            assertThat(other.waitFor()).isZero();
            assertThat(mine.path()).exists();
        }
    }

    /** Begins a generation and says its number. */
    static final class Beginner {
        public static void main(String[] arguments) {
            try (var staging = ImageDirectory.open(Path.of(arguments[0])).begin()) {
                System.out.println(staging.number());
            }
        }
    }

    @Test
    void aGenerationWithoutAManifestIsNoneAndItsNumberIsNotUsedAgain() throws IOException {
        ImageDirectory images = images();
        commit(images);
        Files.delete(commit(images).path().resolve("manifest.json"));
        assertThat(images.latest().number()).isEqualTo(1);
        assertThatThrownBy(() -> images.generation(2))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("no complete generation 2");
        assertThat(commit(images).number()).isEqualTo(3);
    }

    @Test
    void aSymbolicLinkIsNoGeneration() throws IOException {
        ImageDirectory images = images();
        commit(images);
        Files.createSymbolicLink(images.path().resolve("0007"), Path.of("0001"));
        assertThat(images.latest().number()).isEqualTo(1);
        Path link = Files.createSymbolicLink(
                work.resolve("manifest.json"), images.latest().path().resolve("manifest.json"));
        assertThatThrownBy(() -> Manifest.read(link.getParent()))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining("ELOOP");
    }

    @Test
    void aHostIsADirectoryInTheGeneration() {
        try (var staging = images().begin()) {
            for (String name : List.of("", "..", ".hidden", "a/b", "/etc", "a\0b")) {
                assertThatThrownBy(() -> staging.host(name))
                        .isInstanceOf(ImageException.class)
                        .hasMessageContaining("STASIS_HOST");
            }
            assertThat(staging.host("a-b.c")).isDirectory();
        }
    }

    @Test
    void numbersAreWrittenTheSameInEveryLanguage() {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
        try {
            assertThat(commit(images()).path().getFileName()).hasToString("0001");
        } finally {
            Locale.setDefault(before);
        }
    }

    @Test
    void aMissingDirectoryIsNamed() {
        Path missing = work.resolve("missing");
        assertThatThrownBy(() -> ImageDirectory.open(missing))
                .isInstanceOf(ImageException.class)
                .hasMessageContaining(missing.toString());
    }

    @Test
    void aDirectoryThatCannotBeMadeIsNamedWithTheKernelsWord() throws IOException {
        Path file = Files.createFile(work.resolve("file"));
        assertThatThrownBy(() -> ImageDirectory.create(file.resolve("images")))
                .isInstanceOf(ImageWriteException.class)
                .hasMessageContaining(file.toString())
                .hasMessageMatching(".*(EEXIST|ENOTDIR).*");
    }
}
