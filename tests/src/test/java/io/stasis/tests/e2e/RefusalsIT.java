package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Await;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What cannot be done is refused in one sentence, and harms neither the program nor its earlier generations. */
class RefusalsIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @Test
    void anUnknownPidIsRefused() throws Exception {
        long unused = Long.parseLong(
                        Files.readString(Path.of("/proc/sys/kernel/pid_max")).strip())
                + 7;
        String directory = stasis.work().resolve("nothing").toString();
        stasis.run("checkpoint", "--pid", Long.toString(unused), "--dir", directory)
                .expectRefusal(6, Long.toString(unused));
        assertThat(Path.of(directory))
                .satisfiesAnyOf(
                        path -> assertThat(path).doesNotExist(),
                        path -> assertThat(path).isEmptyDirectory());
    }

    @Test
    void anUnknownNameIsRefused() {
        stasis.run("checkpoint", "nobody").expectRefusal(6, "nobody");
        stasis.run("kill", "nobody").expectRefusal(6, "nobody");
    }

    @Test
    void aDirectoryWithoutAnImageIsRefused() {
        String missing = stasis.work().resolve("missing").toString();
        stasis.run("restart", missing).expectRefusal(5, missing);
        stasis.run("verify", missing).expectRefusal(5, missing);
        stasis.run("inspect", missing).expectRefusal(5, missing);
    }

    @Test
    void aNameThatIsTakenIsRefusedAndTheProgramDoesNotStart() {
        var target = stasis.launch(Programs.c("counter"));
        Path witness = stasis.work().resolve("witness");
        stasis.run("launch", "--name", target.name(), "--", "touch", witness.toString())
                .expectRefusal(1, target.name());
        assertThat(witness).doesNotExist();
        target.finish();
    }

    @Test
    void aPidThatIsTakenIsNamedAndTheImageRestartsWhenItIsFree() throws Exception {
        var target = stasis.launch(Programs.c("counter"));
        target.checkpointAndKill();
        Process occupant = occupy(target.pid());
        try {
            stasis.run("restart", target.image().toString()).expectRefusal(7, Long.toString(target.pid()));
            assertThat(occupant.isAlive()).isTrue();
        } finally {
            occupant.destroyForcibly().waitFor();
        }
        target.restart();
        target.finish();
    }

    /** Starts something harmless under a certain pid, which is free. */
    private static Process occupy(long pid) throws IOException, InterruptedException {
        for (int attempt = 0; attempt < 1000; attempt++) {
            Files.writeString(Path.of("/proc/sys/kernel/ns_last_pid"), Long.toString(pid - 1));
            Process process = new ProcessBuilder("sleep", "300").start();
            if (process.pid() == pid) {
                return process;
            }
            process.destroyForcibly().waitFor();
        }
        throw new AssertionError("pid " + pid + " could not be taken");
    }

    @Test
    void aRunningProgramIsNotRestartedASecondTime() {
        var target = stasis.launch(Programs.c("counter"));
        target.checkpoint();
        stasis.run("restart", target.image().toString()).expectRefusal(7, Long.toString(target.pid()));
        target.awaitMoreTicks();
        target.finish();
    }

    @Test
    void aLockThatSomebodyElseHasMeanwhileIsNamedAndTheImageRestartsWhenItIsFree() throws IOException {
        var target = stasis.launch(Programs.c("locks"));
        target.awaitTicks(3);
        target.checkpointAndKill();
        Path file = Path.of(target.progress().file() + ".posix");
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
                FileLock lock = channel.lock()) {
            assertThat(lock.isValid()).isTrue();
            stasis.run("restart", target.image().toString()).expectRefusal(1, file.toString());
        }
        target.restart();
        target.finish();
    }

    /** It outlives the program, as it was not removed. */
    @Test
    void aSharedSegmentThatSomebodyElseUsesIsNamedAndTakenBackWhenItIsFree() throws Exception {
        var target = stasis.launch(Programs.c("segments"));
        target.awaitTicks(3);
        target.checkpointAndKill();
        String id = segment(0x57a50000 | (int) (target.pid() & 0xffff));
        Process user = new ProcessBuilder(
                        "python3",
                        "-c",
                        "import ctypes, time; c = ctypes.CDLL(None); print(c.shmat(" + id
                                + ", None, 0), flush=True); time.sleep(300)")
                .start();
        try {
            user.inputReader().readLine();
            stasis.run("restart", target.image().toString()).expectRefusal(5, "segment " + id);
        } finally {
            user.destroyForcibly().waitFor();
        }
        target.restart();
        target.finish();
    }

    private static String segment(int key) throws IOException {
        try (var lines = Files.lines(Path.of("/proc/sysvipc/shm"))) {
            return lines.map(line -> line.strip().split("\\s+"))
                    .filter(fields -> fields[0].equals(Integer.toString(key)))
                    .map(fields -> fields[1])
                    .findFirst()
                    .orElseThrow();
        }
    }

    @Test
    void anExecutableThatChangedSinceIsNamed() throws IOException {
        Program original = Programs.c("counter");
        Path copy = stasis.work().resolve("changing");
        Files.copy(Path.of(original.command().getFirst()), copy, StandardCopyOption.COPY_ATTRIBUTES);
        var target = stasis.launch(new Program("changing", List.of(copy.toString())));
        target.checkpointAndKill();
        Path kept = stasis.work().resolve("kept");
        Files.move(copy, kept);
        Files.copy(kept, copy, StandardCopyOption.COPY_ATTRIBUTES);
        Files.write(copy, new byte[] {0}, StandardOpenOption.APPEND);
        stasis.run("restart", target.image().toString()).expectRefusal(5, copy.toString());
        Files.delete(copy);
        stasis.run("restart", target.image().toString()).expectRefusal(5, copy.toString());
        Files.move(kept, copy);
        target.restart();
        target.finish();
    }

    @Test
    void aFullDiskFailsTheCheckpointAndHarmsNothing() throws Exception {
        Path small = stasis.work().resolve("small");
        Files.createDirectories(small);
        shell("mount", "-t", "tmpfs", "-o", "size=16m", "none", small.toString());
        try {
            var target = stasis.launch(Programs.c("heap").with("6", "random"));
            String directory = small.resolve("image").toString();
            stasis.run("checkpoint", target.name(), "--dir", directory).expectSuccess();
            Path filler = small.resolve("filler");
            Files.write(filler, new byte[5 << 20]);
            stasis.run("checkpoint", target.name(), "--dir", directory).expectRefusal(1, "ENOSPC");
            target.awaitMoreTicks();
            stasis.run("checkpoint", target.name(), "--dir", directory, "--kill")
                    .expectRefusal(1, "ENOSPC");
            target.awaitMoreTicks();
            try (var entries = Files.list(Path.of(directory))) {
                assertThat(entries.map(entry -> entry.getFileName().toString())).containsOnly("0001", "latest");
            }
            Files.delete(filler);
            stasis.run("checkpoint", target.name(), "--dir", directory).expectSuccess();
            stasis.run("kill", target.name(), "--now").expectSuccess();
            target.awaitEnd();
            stasis.run("verify", directory).expectSuccess();
            stasis.run("restart", "--detach", "--generation", "1", directory).expectSuccess();
            target.awaitMoreTicks();
            target.progress().checkUnharmed();
            stasis.run("kill", target.name(), "--now").expectSuccess();
            Await.until("the program is gone", () -> stasis.marked().stream().noneMatch(pid -> pid == target.pid()));
        } finally {
            shell("umount", "--lazy", small.toString());
        }
    }

    private static void shell(String... command) throws IOException, InterruptedException {
        var process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!process.waitFor(30, TimeUnit.SECONDS) || process.exitValue() != 0) {
            throw new AssertionError(String.join(" ", command) + ": " + output);
        }
    }
}
