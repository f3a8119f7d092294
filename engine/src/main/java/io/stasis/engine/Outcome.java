package io.stasis.engine;

import java.util.List;

/** What one step of a checkpoint or restart did, as facts for the event log. Times are CLOCK_MONOTONIC nanoseconds. */
public sealed interface Outcome {
    ProcessKey process();

    long startedNanos();

    long finishedNanos();

    /**
     * Where a thread stood when it was frozen.
     *
     * @param instruction instruction pointer
     * @param systemCall number of the system call it was blocked in, -1 for user code
     * @param description for people: "in read(3, ...)", "in user code"
     */
    record StopPoint(long instruction, long systemCall, String description) {}

    /** @param waitNanos time from the request until the kernel reported this thread stopped */
    record StoppedThread(int tid, String name, StopPoint at, long waitNanos) {}

    record Suspended(
            ProcessKey process,
            List<StoppedThread> threads,
            List<ProcessKey> children,
            long startedNanos,
            long finishedNanos)
            implements Outcome {}

    /**
     * A pipe or socket between processes.
     *
     * @param id such as "pipe:[1234]"
     * @param kind "pipe", "fifo", ...
     * @param bytes bytes in flight
     * @param holders pids that hold an end, as far as known
     */
    record Connection(String id, String kind, long bytes, List<Integer> holders) {}

    record Drained(
            ProcessKey process, int descriptors, List<Connection> connections, long startedNanos, long finishedNanos)
            implements Outcome {}

    /**
     * @param pages pages written
     * @param zeroPages pages found zero and left out
     * @param bytes size of the files written
     */
    record Written(ProcessKey process, long pages, long zeroPages, long bytes, long startedNanos, long finishedNanos)
            implements Outcome {}

    /**
     * @param files all files of this host, names relative to the generation directory
     * @param process the root process
     */
    record Finished(
            ProcessKey process,
            List<ImageFile> files,
            List<ProcessSummary> processes,
            long startedNanos,
            long finishedNanos)
            implements Outcome {}

    record ImageFile(String name, long size, int crc32c) {}

    /** A process for the manifest. */
    record ProcessSummary(
            int pid,
            int parent,
            String name,
            List<String> commandLine,
            int threads,
            long memoryBytes,
            long pagesBytes,
            int userId) {}

    record Refilled(ProcessKey process, List<Connection> connections, long startedNanos, long finishedNanos)
            implements Outcome {}

    /** @param pausedNanos from the first thread frozen to the last one running */
    record Resumed(ProcessKey process, int threads, long pausedNanos, long startedNanos, long finishedNanos)
            implements Outcome {}

    /** A process made again at restart, still empty. */
    record Created(ProcessKey process, int parent, long startedNanos, long finishedNanos) implements Outcome {}

    /** Memory, descriptors and threads are in place. */
    record Rebuilt(
            ProcessKey process,
            int threads,
            int mappings,
            int descriptors,
            long bytes,
            long startedNanos,
            long finishedNanos)
            implements Outcome {}

    /** A restored process runs. */
    record Released(ProcessKey process, long startedNanos, long finishedNanos) implements Outcome {}
}
