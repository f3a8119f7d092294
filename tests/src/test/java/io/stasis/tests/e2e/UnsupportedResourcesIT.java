package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Await;
import io.stasis.tests.harness.ProcessTable;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import io.stasis.tests.harness.Target;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What cannot be captured is named, the program runs on unharmed, and its earlier generation still restarts. */
class UnsupportedResourcesIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @ParameterizedTest
    @CsvSource({
        "netlink, socket",
        "inotify-removed, inotify watch 1",
        "pidfd-outside, pidfd of process 1",
        "pidfd-gone, pidfd of a process that is gone",
        "timer-outside, the clock of process 1",
        "mqueue-notify, message queue /unsupported",
        "fanotify, fanotify",
        "packet, socket",
        "userfaultfd, userfaultfd",
        "io_uring, io_uring",
        "perf, perf",
        "aio, aio",
        "seccomp-supervisor, seccomp",
        "seccomp-strict, seccomp",
        "own-descriptors, thread",
        "shared-memory, address space",
        "shared-descriptors, descriptor table",
        "shared-directories, working directory",
        "secret, mapping",
        "mount-namespace, namespace",
        "network-namespace, namespace",
        "uts-namespace, namespace",
        "ipc-namespace, namespace",
        "pid-namespace, namespace"
    })
    void anUnsupportedResourceIsRefusedByName(String kind, String word) throws IOException {
        refuses(kind, word, true);
    }

    /** What a seccomp filter allows can be read of a stopped thread only, so that `stasis check` cannot tell it. */
    @Test
    void aFilterThatKillsWhatACheckpointMustAskIsRefused() throws IOException {
        refuses("seccomp", "seccomp", false);
    }

    /** @param beforehand whether it is known before anything is frozen */
    private static void refuses(String kind, String word, boolean beforehand) throws IOException {
        var target = stasis.launch(Programs.c("unsupported").with(kind));
        target.checkpoint();
        hold(target);
        var refusal = stasis.run("checkpoint", target.name()).expectRefusal(4, word);
        assertThat(ProcessTable.tree(target.pid()))
                .as("the sentence names a process of the tree: " + refusal)
                .anyMatch(pid -> refusal.err().contains(Long.toString(pid)));
        target.awaitMoreTicks();
        stasis.run("checkpoint", target.name(), "--kill").expectRefusal(4, word);
        target.awaitMoreTicks();
        if (beforehand) {
            assertThat(stasis.run("check", "--pid", Long.toString(target.pid())).out())
                    .contains(word);
        }
        stasis.run("kill", target.name(), "--now").expectSuccess();
        target.awaitEnd();
        target.restart();
        target.end();
    }

    /** What can only be read by taking it is left to the program. */
    @ParameterizedTest
    @CsvSource({"inotify-unread, inotify descriptor", "mqueue-message, message queue /unsupported"})
    void whatCannotBeReadWithoutTakingItIsLeftInPeace(String kind, String word) throws IOException {
        var target = stasis.launch(Programs.c("unsupported").with(kind));
        hold(target);
        stasis.run("checkpoint", target.name()).expectRefusal(1, word);
        target.awaitMoreTicks();
        target.finish();
    }

    @Test
    void aConnectionToAProcessOutsideIsRefusedByItsAddresses() throws IOException {
        try (var server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String port = Integer.toString(server.getLocalPort());
            var target = stasis.launch(Programs.c("unsupported").with("tcp"));
            Path told = Files.writeString(Path.of(target.progress().file() + ".port"), port);
            Files.move(told, Path.of(target.progress().file() + ".go"), StandardCopyOption.ATOMIC_MOVE);
            try (var connection = server.accept()) {
                target.awaitLine("holds");
                stasis.run("checkpoint", target.name())
                        .expectRefusal(4, "TCP socket 127.0.0.1:" + connection.getPort(), "to 127.0.0.1:" + port);
                target.awaitMoreTicks();
                target.finish();
            }
        }
    }

    /** Kinds that may be captured or not, but then by the rules. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "memfd",
                "inotify",
                "deleted",
                "shm",
                "lock",
                "flock",
                "lease",
                "owner",
                "ptmx",
                "timer",
                "proc",
                "deleted-directory",
                "deleted-mapping"
            })
    void aRareResourceIsRefusedOrSurvives(String kind) throws IOException {
        refusedOrSurvives(Programs.c("unsupported"), kind);
    }

    private static void refusedOrSurvives(Program program, String kind) throws IOException {
        var target = stasis.launch(program.with(kind));
        hold(target);
        var result = stasis.run("checkpoint", target.name(), "--kill");
        if (result.exit() == 0) {
            target.awaitEnd();
            target.restart();
        } else {
            result.expectRefusal(4, Long.toString(target.pid()));
        }
        target.awaitMoreTicks();
        target.finish();
    }

    @Test
    void aProgramWhoseFileIsDeletedIsRefusedOrSurvives() throws IOException {
        Program original = Programs.c("unsupported");
        Path copy = stasis.work().resolve("deletable");
        Files.copy(Path.of(original.command().getFirst()), copy, StandardCopyOption.COPY_ATTRIBUTES);
        refusedOrSurvives(new Program("deletable", List.of(copy.toString())), "deleted-program");
    }

    @Test
    void aProgramThatSomebodyElseTracesIsRefusedAndUnharmed() throws Exception {
        var target = stasis.launch(Programs.c("counter"));
        Process tracer = new ProcessBuilder("strace", "-f", "-o", "/dev/null", "-p", Long.toString(target.pid()))
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        try {
            Await.until("strace traces it", () -> tracerOf(target.pid()) != 0);
            stasis.run("checkpoint", target.name()).expectRefusal(4, Long.toString(tracerOf(target.pid())));
            target.awaitMoreTicks();
        } finally {
            tracer.destroy();
            tracer.waitFor();
        }
        target.checkpoint();
        target.finish();
    }

    private static long tracerOf(long pid) {
        try (var lines = Files.lines(Path.of("/proc/" + pid + "/status"))) {
            return lines.filter(line -> line.startsWith("TracerPid:"))
                    .mapToLong(line -> Long.parseLong(line.substring(10).strip()))
                    .sum();
        } catch (IOException e) {
            return 0;
        }
    }

    @Test
    void a32BitProgramIsRefusedAndUnharmed() {
        Program program = Programs.bits32("counter");
        assumeTrue(Programs.runs(program), "this kernel runs no 32-bit programs (ia32_emulation=0)");
        var target = stasis.launch(program);
        stasis.run("checkpoint", target.name()).expectRefusal(4, "32-bit");
        stasis.run("checkpoint", target.name(), "--kill").expectRefusal(4, "32-bit");
        target.finish();
    }

    /** The parent of vfork(2) cannot be stopped before its child has ended. */
    @Test
    void aProgramInsideVforkIsUnharmed() {
        var target = stasis.launch(Programs.c("blocked").with("vfork", "3"));
        var result = stasis.run("checkpoint", target.name());
        assertThat(result.exit()).isIn(0, 1, 4);
        target.finish();
    }

    private static void hold(Target target) throws IOException {
        Files.createFile(Path.of(target.progress().file() + ".go"));
        target.awaitLine("holds");
    }
}
