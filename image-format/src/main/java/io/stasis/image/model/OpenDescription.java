package io.stasis.image.model;

/** An open file description, see open(2): what all descriptors made by dup(2) and fork(2) share. */
public sealed interface OpenDescription {
    /** File status flags as fcntl(F_GETFL) gives them (access mode, O_APPEND, O_NONBLOCK, ...). */
    int statusFlags();

    /** A regular file, directory or harmless device (/dev/null, zero, full, random, urandom), by path. */
    record OpenFile(int statusFlags, FileReference file, long offset) implements OpenDescription {}

    /**
     * An epoll instance, see epoll(7). Its interests are added again in a process that holds it.
     *
     * @param owner pid of a process in whose table the descriptors of the interests are
     */
    record EventPoll(int statusFlags, int owner, java.util.List<Interest> interests) implements OpenDescription {}

    /** What an epoll instance waits for: {@code struct epoll_event} and the descriptor it was added with. */
    record Interest(int fd, int events, long data) {}

    /** eventfd(2) with its counter. */
    record EventCounter(int statusFlags, long count, boolean semaphore) implements OpenDescription {}

    /** A connected, unnamed Unix stream socket whose peer is closed and whose queue is empty: it reads end of file. */
    record DeadSocket(int statusFlags) implements OpenDescription {}

    /** One end of a pipe; {@code pipe} is the index into {@link ComputationImage#pipes()}. */
    record PipeEnd(int statusFlags, int pipe) implements OpenDescription {}

    /**
     * A terminal that belongs to the world outside (the one the program was started from). At restart the terminal of
     * the restart command takes its place.
     */
    record Terminal(int statusFlags, int terminal) implements OpenDescription {}

    /**
     * A descriptor whose far end lies outside the tree and that the restart command's own descriptor of the same role
     * replaces: {@code role} is 0, 1 or 2 for standard input, output, error. Example: output piped into a pager.
     */
    record External(int statusFlags, int role, String what) implements OpenDescription {}
}
