package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.DirectoryTree;
import io.stasis.tests.harness.ProcessTable;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import io.stasis.tests.harness.Target;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A damaged image is never restarted: the file is named, nothing runs, and the generation before it is still good. */
class DamagedImagesIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    private Target target;
    private Path generation;
    private Path spare;

    @BeforeEach
    void twoGenerations() throws IOException {
        target = stasis.launch(Programs.c("sessions"));
        target.checkpoint();
        target.checkpointAndKill();
        generation = target.image().resolve("latest").toRealPath();
        spare = target.image().resolveSibling("spare");
        DirectoryTree.copy(generation, spare);
    }

    /** Whatever was done to the newest generation, the one before it restarts. */
    @AfterEach
    void theEarlierGenerationRestarts() {
        target.restart("--generation", "1");
        target.checkpointAndKill();
        target.restart();
        target.end();
    }

    private void restore(Path file) throws IOException {
        Files.copy(spare.resolve(generation.relativize(file)), file, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
    }

    private void isRefused(Path file) {
        String name = file.getFileName().toString();
        stasis.run("verify", target.image().toString()).expectRefusal(5, name);
        stasis.run("restart", target.image().toString()).expectRefusal(5, name);
        stasis.run("restart", "--detach", target.image().toString()).expectRefusal(5, name);
        assertThat(ProcessTable.exists(target.pid())).isFalse();
    }

    @Test
    void aFlippedByteInAnyFileIsFound() throws IOException {
        var kinds = new TreeSet<String>();
        for (Path file : DirectoryTree.files(generation)) {
            String kind = file.getFileName().toString().replaceAll("[0-9]+", "N");
            byte[] good = Files.readAllBytes(file);
            if (!kinds.add(kind) || good.length == 0) {
                continue;
            }
            for (int at : new int[] {0, good.length / 2, good.length - 1}) {
                byte[] bad = good.clone();
                bad[at] ^= 0x10;
                Files.write(file, bad);
                stasis.run("verify", target.image().toString())
                        .expectRefusal(5, file.getFileName().toString());
            }
            isRefused(file);
            restore(file);
        }
        assertThat(kinds).contains("manifest.json", "events.log", "N.process", "N.pages");
        stasis.run("verify", target.image().toString()).expectSuccess();
    }

    @Test
    void aTruncatedPageFileIsFound() throws IOException {
        for (Path file : DirectoryTree.files(generation)) {
            if (file.toString().endsWith(".pages")) {
                byte[] good = Files.readAllBytes(file);
                Files.write(file, Arrays.copyOf(good, good.length - 4096));
                isRefused(file);
                Files.write(file, Arrays.copyOf(good, 100));
                isRefused(file);
                Files.write(file, new byte[0]);
                isRefused(file);
                restore(file);
            }
        }
    }

    @Test
    void aMissingFileIsFound() throws IOException {
        for (Path file : DirectoryTree.files(generation)) {
            if (file.endsWith("manifest.json")) {
                continue; // without it there is no generation
            }
            Files.delete(file);
            isRefused(file);
            restore(file);
        }
    }

    /** A generation without its manifest is none; the one before it is the newest. */
    @Test
    void aGenerationWithoutAManifestDoesNotCount() throws IOException {
        Path manifest = generation.resolve("manifest.json");
        Files.delete(manifest);
        stasis.run("restart", "--generation", "2", target.image().toString()).expectRefusal(5, "0002");
        Files.copy(spare.resolve("manifest.json"), manifest);
    }

    @Test
    void anImageOfANewerFormatIsRefusedAsSuch() throws IOException {
        Path manifest = generation.resolve("manifest.json");
        String text = Files.readString(manifest);
        String newer = text.replaceFirst("\"format\"\\s*:\\s*\\d+", "\"format\" : 999");
        assertThat(newer).isNotEqualTo(text);
        Files.writeString(manifest, newer);
        for (String command : List.of("restart", "verify", "inspect")) {
            stasis.run(command, target.image().toString()).expectRefusal(5, "999");
        }
        restore(manifest);
    }
}
