package io.stasis.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.linux.Pid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The engine alone, without actors: JUnit's thread is the tracer thread. */
class CheckpointRestartTest {
    private static final int SIGTERM = 15;
    private static final int SIGKILL = 9;
    private static final int WALL = 0x40000000;
    private static final int WNOHANG = 1;
    private static final int EXIT_BY_SIGTERM = 42;

    @TempDir
    Path directory;

    private final Engine engine = new LinuxEngine();
    private final List<Integer> started = new ArrayList<>();
    private Path progress;
    private int pid;

    @BeforeEach
    void startTheTicker() throws Exception {
        Path program = directory.resolve("ticker");
        Process compiler = new ProcessBuilder("gcc", "-O2", "-pthread", "-o", program.toString(), "src/test/c/ticker.c")
                .inheritIO()
                .start();
        assertThat(compiler.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(compiler.exitValue()).isZero();
        progress = directory.resolve("progress");
        pid = Libc.spawn(program.toString(), progress.toString());
        started.add(pid);
        awaitProgressBeyond(10);
    }

    @AfterEach
    void endEverything() {
        for (int process : started) {
            for (int child : io.stasis.linux.proc.Tasks.childrenOf(new Pid(process))) {
                Libc.call(SystemCall.KILL, child, SIGKILL);
            }
            Libc.call(SystemCall.KILL, process, SIGKILL);
            Libc.call(SystemCall.WAIT4, process, 0, WALL, 0);
        }
    }

    private long progress() {
        try {
            String text = Files.exists(progress) ? Files.readString(progress).strip() : "";
            return text.isEmpty() ? 0 : Long.parseLong(text);
        } catch (IOException e) {
            return 0;
        }
    }

    private void awaitProgressBeyond(long round) {
        await("progress beyond " + round, () -> progress() > round);
    }

    private static void await(String what, BooleanSupplier condition) {
        long deadline = System.nanoTime() + 10_000_000_000L;
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(deadline);
            Thread.onSpinWait();
        }
    }

    private Path checkpoint(String name, boolean kill) throws IOException {
        Path generation = directory.resolve(name);
        Path host = Files.createDirectories(generation.resolve("host"));
        try (var session = engine.checkpoint(new CheckpointRequest("host", List.of(pid), null, host, "host"))) {
            List<ProcessKey> todo = session.discover();
            while (!todo.isEmpty()) {
                todo.forEach(session::suspend);
                todo = session.unsuspended();
            }
            session.processes().forEach(session::drain);
            session.processes().forEach(session::write);
            session.finishImage();
            session.processes().forEach(session::refill);
            session.processes().forEach(kill ? session::terminate : session::resume);
        }
        if (kill) {
            Libc.call(SystemCall.WAIT4, pid, 0, WALL, 0);
        }
        return generation;
    }

    private void restart(Path generation) {
        int stub = 0;
        try (var session = engine.restore(
                new RestoreRequest("host", generation, "host", directory, RestartOptions.foreground(PidChoice.KEEP)))) {
            assertThat(session.verify()).isEmpty();
            session.stub();
            stub = session.spawn();
            session.adopt(stub);
            session.processes().forEach(session::create);
            session.processes().forEach(session::rebuild);
            session.processes().forEach(session::refill);
            session.release();
        } finally {
            Libc.call(SystemCall.WAIT4, stub, 0, WALL, 0);
        }
    }

    private int exitStatusAfterSigterm() {
        Libc.check(Libc.call(SystemCall.KILL, pid, SIGTERM), "kill");
        ByteBuffer status = Libc.buffer(8);
        await(
                "end of the ticker",
                () -> Libc.call(SystemCall.WAIT4, pid, Libc.address(status), WALL | WNOHANG, 0) == pid);
        started.clear();
        assertThat(status.getInt(0) & 0x7f).isZero();
        return status.getInt(0) >> 8;
    }

    @Test
    void aProgramRunsOnAfterACheckpoint() throws Exception {
        checkpoint("first", false);
        assertThat(ProcStatus.read(new Pid(pid)).tracerPid()).isZero();
        awaitProgressBeyond(progress() + 10);
        assertThat(exitStatusAfterSigterm()).isEqualTo(EXIT_BY_SIGTERM);
    }

    @Test
    void aKilledProgramLivesOnTwice() throws Exception {
        for (int life = 0; life < 2; life++) {
            Path generation = checkpoint("generation" + life, true);
            long before = progress();
            restart(generation);
            awaitProgressBeyond(before + 10);
        }
        assertThat(exitStatusAfterSigterm()).isEqualTo(EXIT_BY_SIGTERM);
    }
}
