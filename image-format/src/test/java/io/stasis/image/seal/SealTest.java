package io.stasis.image.seal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.stasis.image.FileSummary;
import io.stasis.image.FormatVersion;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageDirectory.Generation;
import io.stasis.image.ImageVerifier;
import io.stasis.image.Manifest;
import io.stasis.image.log.EventLog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SealTest {
    @TempDir
    Path work;

    private Generation commit(SigningKey key, String content) throws IOException {
        try (var staging = ImageDirectory.create(work.resolve("images")).begin()) {
            Path log = staging.path().resolve(ImageVerifier.LOG);
            EventLog.Slice slice;
            try (EventLog source = EventLog.open(work.resolve("source.log"))) {
                slice = EventLog.writeSlice(
                        log, source.append(List.of(new EventLog.Draft("a", 1, 1, content, new byte[10]))));
            }
            FileSummary summary = slice.summary();
            Manifest manifest = new Manifest(
                    FormatVersion.CURRENT,
                    "0.1.0",
                    "job",
                    staging.number(),
                    null,
                    "2026-01-01T00:00:00Z",
                    "6.1",
                    "amd64",
                    Map.of(),
                    List.of(),
                    List.of(Manifest.FileEntry.of(ImageVerifier.LOG, summary.size(), summary.crc32c())),
                    HexFormat.of().formatHex(slice.head()),
                    1,
                    1);
            return key == null
                    ? staging.commit(manifest)
                    : staging.commit(manifest, complete -> Seal.write(complete, manifest, key));
        }
    }

    private SigningKey key(String name) {
        return SigningKey.generate(work.resolve(name));
    }

    @Test
    void aSignedGenerationIsRightForItsKeyAndNoOther() throws IOException {
        SigningKey key = key("key");
        Generation generation = commit(SigningKey.read(work.resolve("key")), "content");
        assertThat(ImageVerifier.verify(generation.path())).isEmpty();
        assertThat(Seal.problem(generation, null)).isEmpty();
        assertThat(Seal.problem(generation, key.publicKey())).isEmpty();
        assertThat(Seal.problem(generation, SigningKey.readPublic(work.resolve("key.pub"))))
                .isEmpty();
        SigningKey other = key("other");
        assertThat(Seal.problem(generation, other.publicKey()))
                .hasValueSatisfying(problem -> assertThat(problem)
                        .contains(
                                SigningKey.fingerprint(key.publicKey()),
                                SigningKey.fingerprint(other.publicKey()),
                                "is required"));
    }

    @Test
    void anUnsignedGenerationIsRefusedOnlyWhereASignatureIsRequired() throws IOException {
        Generation generation = commit(null, "content");
        assertThat(Seal.problem(generation, null)).isEmpty();
        assertThat(Seal.problem(generation, key("key").publicKey()))
                .hasValueSatisfying(problem -> assertThat(problem).contains("is not signed"));
    }

    /** Another image, whole by all its checksums, in the place of the signed one. */
    @Test
    void aForgedImageIsFound() throws IOException {
        SigningKey key = key("key");
        Generation generation = commit(key, "content");
        Generation forged = commit(null, "forged!");
        for (String name : List.of(Manifest.NAME, ImageVerifier.LOG)) {
            Files.write(
                    generation.path().resolve(name),
                    Files.readAllBytes(forged.path().resolve(name)));
        }
        assertThat(ImageVerifier.verify(generation.path())).isEmpty();
        assertThat(Seal.problem(generation, key.publicKey()))
                .hasValueSatisfying(problem -> assertThat(problem).contains("forged or damaged"));
    }

    @Test
    void anAlteredSignatureIsFound() throws IOException {
        SigningKey key = key("key");
        Generation generation = commit(key, "content");
        Path seal = generation.path().resolve(ImageVerifier.SEAL);
        String good = Files.readString(seal);
        for (String bad : List.of(
                good.replace("log-head ", "log-head 0"),
                good.replaceFirst("file [0-9a-f]", "file g"),
                good.replaceFirst("signature ....", "signature AAAA"),
                good.replaceFirst("signature .*\n", "signature ?\n"),
                good.replaceFirst("signature .*\n", ""),
                "stasis-seal 1\n",
                "")) {
            assertThat(bad).isNotEqualTo(good);
            Files.writeString(seal, bad);
            assertThat(Seal.problem(generation, key.publicKey())).as(bad).isPresent();
        }
        Files.writeString(seal, good);
        assertThat(Seal.problem(generation, key.publicKey())).isEmpty();
    }

    @Test
    void aKeyIsForItsOwnerOnlyAndNeverReplaced() throws IOException {
        Path file = work.resolve("key");
        key("key");
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
                .isEqualTo("rw-------");
        assertThatThrownBy(() -> key("key")).isInstanceOf(KeyException.class).hasMessageContaining("already");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r-----"));
        assertThatThrownBy(() -> SigningKey.read(file))
                .isInstanceOf(KeyException.class)
                .hasMessageContaining("rw-r-----")
                .hasMessageContaining("chmod 600");
    }

    @Test
    void whatIsNoKeyIsRefused() throws IOException {
        assertThatThrownBy(() -> SigningKey.read(work.resolve("none"))).hasMessageContaining("there is no key file");
        Path text = work.resolve("text");
        Files.writeString(text, "hello");
        Files.setPosixFilePermissions(text, PosixFilePermissions.fromString("rw-------"));
        assertThatThrownBy(() -> SigningKey.read(text)).hasMessageContaining("holds no private key");
        assertThatThrownBy(() -> SigningKey.readPublic(text)).hasMessageContaining("holds no public key");
        key("one");
        key("two");
        String mixed = Files.readString(work.resolve("one")).replaceFirst("(?s)-----BEGIN PUBLIC.*", "")
                + Files.readString(work.resolve("two.pub"));
        Files.writeString(text, mixed);
        assertThatThrownBy(() -> SigningKey.read(text)).hasMessageContaining("do not belong together");
    }
}
