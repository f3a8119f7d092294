package io.stasis.tests.golden;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.actors.replay.EventText;
import io.stasis.actors.replay.Explanation;
import io.stasis.actors.replay.Operations;
import io.stasis.actors.replay.Rerun;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageVerifier;
import io.stasis.image.PageFile;
import io.stasis.image.RecordFile;
import io.stasis.image.log.EventLog;
import io.stasis.image.log.LogAudit;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.seal.Seal;
import io.stasis.image.seal.SigningKey;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Images and logs of earlier versions stay readable. Each directory under {@code golden} was made by one version, see {@code
 * src/test/golden/make}; when this test fails, a format was changed without a new version of it.
 */
class GoldenImageTest {
    private static final Path GOLDEN = Path.of("src/test/resources/golden");

    static List<Path> versions() {
        try (Stream<Path> all = Files.list(GOLDEN)) {
            return all.sorted().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static List<EventLog.Entry> entries(Path log) {
        List<EventLog.Entry> entries = new ArrayList<>();
        EventLog.openReadOnly(log, entries::add).close();
        return entries;
    }

    @ParameterizedTest
    @MethodSource("versions")
    void everyFileOfAnImageIsRead(Path version) {
        List<ImageDirectory.Generation> generations =
                ImageDirectory.open(version).generations();
        assertThat(generations).hasSize(2);
        for (ImageDirectory.Generation generation : generations) {
            assertThat(ImageVerifier.verify(generation.path())).isEmpty();
            assertThat(generation.manifest().computation()).isEqualTo("pair");
            Path host = generation.path().resolve("golden");
            ComputationImage tree = RecordFile.read(host.resolve("tree.record"), ComputationImage.class);
            assertThat(tree.pipes()).hasSize(1);
            assertThat(tree.pipes().getFirst().contents()).isEqualTo("golden".getBytes());
            var processes = generation.manifest().hosts().getFirst().processes();
            assertThat(processes).hasSize(2);
            int threads = 0;
            for (var process : processes) {
                ProcessImage image = RecordFile.read(host.resolve(process.pid() + ".process"), ProcessImage.class);
                threads += image.threads().size();
                try (PageFile pages = PageFile.open(host.resolve(process.pid() + ".pages"))) {
                    pages.verify();
                    assertThat(pages.runs()).isNotEmpty();
                }
            }
            assertThat(threads).isEqualTo(3);
        }
    }

    @ParameterizedTest
    @MethodSource("versions")
    void theSignatureIsRight(Path version) {
        ImageDirectory images = ImageDirectory.open(version);
        var key = SigningKey.readPublic(version.resolve("key.pub"));
        assertThat(Seal.problem(images.generation(2), key)).isEmpty();
        assertThat(Seal.problem(images.generation(1), key)).isPresent();
    }

    @ParameterizedTest
    @MethodSource("versions")
    void logsAreReadDecidedAgainAndExplained(Path version) {
        List<EventLog.Entry> agent = entries(version.resolve("events.log"));
        assertThat(LogAudit.findings(version.resolve("events.log"))).isEmpty();
        assertThat(agent).extracting(EventText::line).allMatch(line -> !line.isBlank());
        Rerun.Result all = Rerun.of(agent, name -> true);
        assertThat(all.differences()).isEmpty();
        assertThat(all.continued()).isEmpty();
        assertThat(agent)
                .extracting(EventLog.Entry::type)
                .contains(
                        "computation.registered.1",
                        "computation.committed.1",
                        "computation.restarted.1",
                        "process.suspended.1",
                        "process.terminated.1",
                        "process.released.1",
                        "thread.suspended.1",
                        "connection.drained.1");
        assertThat(Operations.of(agent)).hasSize(3);
        for (String generation : List.of("0001", "0002")) {
            List<EventLog.Entry> slice = entries(version.resolve(generation).resolve("events.log"));
            assertThat(Rerun.of(slice, name -> true).differences()).isEmpty();
            var operation = Operations.of(slice).getLast();
            assertThat(Explanation.of(operation, slice).verdict()).contains("checkpoint pair#");
        }
    }
}
