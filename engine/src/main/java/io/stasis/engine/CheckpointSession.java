package io.stasis.engine;

import java.util.List;

/**
 * One attempt to checkpoint one tree. The phases come in this order; each method does one phase for one process, so
 * that whoever drives it can log the intent before and the outcome after.
 *
 * <pre>{@code
 * try (var session = engine.checkpoint(request)) {
 *     var todo = session.discover();                      // nothing is frozen; refuses what cannot be captured
 *     while (!todo.isEmpty()) {                           // suspend until the set is stable
 *         todo.forEach(session::suspend);
 *         todo = session.unsuspended();
 *     }
 *     for (var p : session.processes()) session.drain(p);
 *     for (var p : session.processes()) session.write(p);
 *     session.finishImage();
 *     for (var p : session.processes()) session.refill(p);
 *     for (var p : session.processes()) session.resume(p);   // or terminate(p)
 * }
 * }</pre>
 *
 * Closing at any point lets every process go on as if nothing had happened. Failures are {@link EngineException}s.
 */
public interface CheckpointSession extends AutoCloseable {
    /**
     * The tree as it is now, parents first; nothing is frozen.
     *
     * @throws UnsupportedResourceException naming everything that cannot be captured
     */
    List<ProcessKey> discover();

    /** Freezes every thread of the process. A process that has just ended gives an outcome without threads. */
    Outcome.Suspended suspend(ProcessKey process);

    /** Processes of the tree that were born meanwhile; empty when the whole tree stands still. */
    List<ProcessKey> unsuspended();

    /** Frozen live processes, parents first; valid once {@link #unsuspended()} was empty. */
    List<ProcessKey> processes();

    /** Reads registers, descriptors and what is in flight in the connections that this process is first to hold. */
    Outcome.Drained drain(ProcessKey process);

    /** Writes the process's pages and its record. */
    Outcome.Written write(ProcessKey process);

    /** Writes what the processes share and returns every file of this host in this generation. */
    Outcome.Finished finishImage();

    /** Puts back what draining took out. */
    Outcome.Refilled refill(ProcessKey process);

    /** Lets every thread of the process run on. */
    Outcome.Resumed resume(ProcessKey process);

    /** Ends the process with SIGKILL instead of resuming it; its last state is the image's. */
    Outcome.Resumed terminate(ProcessKey process);

    /** Resumes whatever is still frozen. Never throws for a process that is gone. */
    @Override
    void close();
}
