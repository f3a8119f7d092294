package io.stasis.engine;

import java.nio.file.Path;
import java.util.List;

/**
 * One attempt to restart one tree from one generation.
 *
 * <pre>{@code
 * try (var session = engine.restore(request)) {
 *     var problems = session.verify();              // all that is missing, in one go
 *     int stub = spawn(session.stub());             // by the restart command; or session.spawn() for a detached one
 *     session.adopt(stub);
 *     for (var p : session.processes()) session.create(p);
 *     for (var p : session.processes()) session.rebuild(p);
 *     for (var p : session.processes()) session.refill(p);
 *     session.release();
 * }
 * }</pre>
 *
 * Closing before {@link #release()} kills everything that was made; no restored process has then run user code.
 */
public interface RestoreSession extends AutoCloseable {
    /** Checks the image and this host without changing anything. Empty when the restart can begin. */
    List<Engine.Problem> verify();

    /** Writes the stub's executable and returns its path. */
    Path stub();

    /**
     * Whether the restart command is to start the stub on a pseudo-terminal of its own, as the root leads the session of
     * its terminal and the command's terminal has another session.
     */
    boolean needsPty();

    /** Spawns the stub as a child of this process. Returns its pid. */
    int spawn();

    /** Takes over the stub, which has just been spawned. */
    void adopt(int stubPid);

    /** Processes to restore, parents before children; keys hold the start times of the image. */
    List<ProcessKey> processes();

    /** Makes the process with its old pid, still empty. The outcome has the image's pid, as all that follow. */
    Outcome.Created create(ProcessKey process);

    /** Memory, descriptors, threads, timers and everything else the process owns. */
    Outcome.Rebuilt rebuild(ProcessKey process);

    /** Puts bytes in flight back into the connections that this process is first to hold. */
    Outcome.Refilled refill(ProcessKey process);

    /** Checks everything once more and lets all processes go at once. */
    List<Outcome.Released> release();

    /** The root process as this host knows it; valid after create. */
    ProcessKey root();

    /** The pids on this host of {@link #processes}, in the same order; valid after create. */
    List<Integer> pids();

    /** Process group of the tree, as this host knows it, that had the terminal's foreground; 0 for none. */
    int foregroundGroup();

    /** Settings of the terminal the tree had ({@code struct termios2}), null for none. */
    byte[] terminalSettings();

    @Override
    void close();
}
