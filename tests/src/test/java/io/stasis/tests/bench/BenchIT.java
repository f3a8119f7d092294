package io.stasis.tests.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The measurements: whole with the profile "bench", and tiny in every build so that they keep working. */
class BenchIT {
    private static final Path DIRECTORY = Path.of(System.getProperty("stasis.root", ".."))
            .resolve("tests/target/bench")
            .normalize();

    @Test
    @Tag("bench")
    void measure() {
        System.out.println(new Bench(11, 1024).run(DIRECTORY.resolve("report.json")));
    }

    @Test
    void theMeasurementsWork() {
        assertThat(new Bench(1, 16).run(DIRECTORY.resolve("smoke.json")))
                .contains("pause", "restart command", "dd of the same bytes");
    }
}
