package io.stasis.engine;

import io.stasis.engine.capture.TreeCheckpoint;
import io.stasis.engine.restore.TreeRestore;
import io.stasis.linux.elf.StubProgram;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checkpoints and restarts a process of a few instructions, so that every class is loaded and the hot paths are known to
 * the compiler before a user's program is frozen.
 */
final class WarmUp {
    private static final Logger LOG = LoggerFactory.getLogger(WarmUp.class);
    private static final long STUB_ADDRESS = 0x20_0000_0000L;
    private static final int SIGKILL = 9;
    private static final int ROUNDS = 8;

    private WarmUp() {}

    /** Does it in a thread of its own, which alone may trace what it starts. Failure is logged: it harms nobody. */
    static void run() {
        Thread thread = Thread.ofPlatform().name("warm-up").start(WarmUp::rounds);
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void rounds() {
        Path directory = null;
        try {
            directory = Files.createTempDirectory("stasis-warm-up");
            Path program = directory.resolve("program");
            StubProgram.write(program, STUB_ADDRESS);
            for (int i = 0; i < ROUNDS; i++) {
                Path image = Files.createDirectories(directory.resolve(i + "/host"));
                round(program, image, directory);
            }
        } catch (IOException | RuntimeException e) {
            LOG.info("warm-up ended early: {}", e.getMessage());
        } finally {
            if (directory != null) {
                delete(directory);
            }
        }
    }

    private static void round(Path program, Path image, Path work) {
        int pid = Libc.spawn(program.toString());
        try (var session = new TreeCheckpoint(new CheckpointRequest("host", List.of(pid), null, image, "host"))) {
            for (ProcessKey key : session.discover()) {
                session.suspend(key);
            }
            session.unsuspended();
            session.processes().forEach(session::drain);
            session.processes().forEach(session::write);
            session.finishImage();
            session.processes().forEach(session::refill);
            session.processes().forEach(session::terminate);
        } finally {
            end(pid);
        }
        var request =
                new RestoreRequest("host", image.getParent(), "host", work, RestartOptions.detached(PidChoice.DEFAULT));
        int stub = 0;
        int root = 0;
        try (var session = new TreeRestore(request)) {
            if (!session.verify().isEmpty()) {
                return;
            }
            session.stub();
            stub = session.spawn();
            session.adopt(stub);
            session.processes().forEach(session::create);
            root = session.root().pid();
            session.processes().forEach(session::rebuild);
            session.processes().forEach(session::refill);
            session.release();
        } finally {
            end(root);
            end(stub);
        }
    }

    /** Kills and reaps a child of ours. */
    private static void end(int pid) {
        if (pid > 0) {
            Libc.call(SystemCall.KILL, pid, SIGKILL);
            Libc.call(SystemCall.WAIT4, pid, 0, 0x40000000, 0);
        }
    }

    private static void delete(Path directory) {
        try (var files = Files.walk(directory)) {
            for (Path path : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException e) {
            LOG.warn("cannot remove {}", directory, e);
        }
    }
}
