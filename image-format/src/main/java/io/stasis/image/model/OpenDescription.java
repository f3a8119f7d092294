package io.stasis.image.model;

/** An open file description, see open(2): what all descriptors made by dup(2) and fork(2) share. */
public sealed interface OpenDescription {
    /** File status flags as fcntl(F_GETFL) gives them (access mode, O_APPEND, O_NONBLOCK, ...). */
    int statusFlags();

    /** A regular file, directory or harmless device (/dev/null, zero, full, random, urandom), by path. */
    record OpenFile(int statusFlags, FileReference file, long offset) implements OpenDescription {}

    /** A regular file that no path leads to: index into {@link ComputationImage#namelessFiles()}. */
    record OpenNamelessFile(int statusFlags, int file, long offset) implements OpenDescription {}

    /** A directory that was removed while it was open, with the path it had. */
    record OpenRemovedDirectory(int statusFlags, FileReference directory) implements OpenDescription {}

    /**
     * An epoll instance, see epoll(7). Its interests are added again in a process that holds it.
     *
     * @param owner pid of a process in whose table the descriptors of the interests are
     */
    record EventPoll(int statusFlags, int owner, java.util.List<Interest> interests) implements OpenDescription {}

    /**
     * What an epoll instance waits for.
     *
     * @param fd the descriptor it was added with
     * @param description index of the description that it led to, where it leads there no longer; -1 where it does
     * @param events of {@code struct epoll_event}
     * @param data of {@code struct epoll_event}
     */
    record Interest(int fd, int description, int events, long data) {}

    /** eventfd(2) with its counter. */
    record EventCounter(int statusFlags, long count, boolean semaphore) implements OpenDescription {}

    /** signalfd(2); bit {@code n - 1} of the mask stands for signal {@code n}. */
    record SignalQueue(int statusFlags, long mask) implements OpenDescription {}

    /**
     * timerfd_create(2).
     *
     * @param clock a clock of clock_gettime(2)
     * @param flags those of timerfd_settime(2): TFD_TIMER_ABSTIME (1), TFD_TIMER_CANCEL_ON_SET (2)
     * @param ticks expirations that nobody has read yet
     * @param valueNanos time left until the next expiration, 0 when it is disarmed
     * @param intervalNanos time between expirations, 0 for a single one
     * @param deadlineNanos time of day of the next expiration, if the timer was set to one, else 0
     */
    record TimerDescriptor(
            int statusFlags, int clock, int flags, long ticks, long valueNanos, long intervalNanos, long deadlineNanos)
            implements OpenDescription {}

    /** An inotify(7) instance that has no events to be read, with its watches in the order of their numbers. */
    record FileWatcher(int statusFlags, java.util.List<FileWatch> watches) implements OpenDescription {}

    /**
     * What an inotify instance watches.
     *
     * @param number watch descriptor
     * @param path absolute; a symbolic link stands for itself
     * @param mask events, IN_ONESHOT and IN_EXCL_UNLINK
     */
    record FileWatch(int number, String path, int mask) {}

    /**
     * A descriptor of a POSIX message queue without messages, see mq_overview(7).
     *
     * @param id inode number: descriptions of one queue have the same
     * @param name with its slash; the last one that it had when it is removed
     * @param removed whether mq_unlink(3) has removed the name
     * @param mode permissions
     * @param maxMessages mq_maxmsg
     * @param messageSize mq_msgsize
     */
    record PosixMessageQueue(
            int statusFlags,
            long id,
            String name,
            boolean removed,
            int mode,
            int user,
            int group,
            long maxMessages,
            long messageSize)
            implements OpenDescription {}

    /** A descriptor of a process of the image, see pidfd_open(2). */
    record ProcessDescriptor(int statusFlags, int pid) implements OpenDescription {}

    /**
     * A Unix socket, see unix(7).
     *
     * @param id inode number: how other sockets of the image name it
     * @param type SOCK_STREAM (1), SOCK_DGRAM (2) or SOCK_SEQPACKET (5)
     * @param name bytes of {@code sun_path}: empty for an unnamed socket, a leading zero for an abstract name
     * @param file what lies at a name that is a path, else null
     * @param backlog of a listening socket, -1 for any other
     * @param pending ids of the sockets whose connection waits to be accepted, oldest first
     * @param peer id of the socket it is connected to, 0 for none in the image
     * @param peerName name of the peer where that is outside the tree, else empty
     * @param shutdown 1 when it is shut down for reading, 2 for writing, 3 for both
     * @param closed whether no descriptor leads to it any more: it only is the other end of one that is open
     * @param options those of getsockopt(2)
     * @param queue what it has not read yet, oldest first
     */
    record UnixSocket(
            int statusFlags,
            long id,
            int type,
            byte[] name,
            SocketFile file,
            int backlog,
            long[] pending,
            long peer,
            byte[] peerName,
            int shutdown,
            boolean closed,
            java.util.List<SocketOption> options,
            java.util.List<SocketMessage> queue)
            implements OpenDescription {}

    /**
     * The file that bind(2) made.
     *
     * @param directory absolute directory that a relative name starts from, empty for an absolute name
     * @param exists whether the name still led to this socket
     */
    record SocketFile(String directory, boolean exists, int mode, int uid, int gid) {}

    /**
     * A socket of IPv4 or IPv6: tcp(7), udp(7), raw(7).
     *
     * @param id inode number: how other sockets of the image name it
     * @param local sockaddr of this end, of port 0 when it is not bound
     * @param remote sockaddr of the other end, empty when it is not connected
     * @param state tcp(7) state: TCP_ESTABLISHED (1) and so on; TCP_CLOSE (7) for what is no TCP
     * @param backlog of a listening socket, -1 for any other
     * @param peer id of the socket at the other end, 0 for none in the image
     * @param pending whether its connection waits to be accepted by a socket of the image
     * @param closed whether no descriptor leads to it any more: it only is the other end of one that is open
     * @param options those of getsockopt(2)
     * @param received what it has not read yet: datagrams, or one piece of a stream
     * @param unsent what it has written to a stream and the other end has not received
     */
    record InetSocket(
            int statusFlags,
            long id,
            int family,
            int type,
            int protocol,
            byte[] local,
            byte[] remote,
            int state,
            int backlog,
            long peer,
            boolean pending,
            boolean closed,
            java.util.List<SocketOption> options,
            java.util.List<SocketMessage> received,
            byte[] unsent)
            implements OpenDescription {}

    /** An option as getsockopt(2) gives it. */
    record SocketOption(int level, int name, byte[] value) {}

    /**
     * A datagram, or bytes of a stream that came in one piece.
     *
     * @param from sockaddr of the sender, empty for an unnamed one
     * @param data the bytes
     * @param descriptions indices of the open file descriptions sent along (SCM_RIGHTS)
     * @param credentials {@code struct ucred} sent along, empty for none
     */
    record SocketMessage(byte[] from, byte[] data, int[] descriptions, byte[] credentials) {}

    /** One end of a pipe; {@code pipe} is the index into {@link ComputationImage#pipes()}. */
    record PipeEnd(int statusFlags, int pipe) implements OpenDescription {}

    /**
     * A terminal that belongs to the world outside (the one the program was started from). At restart the terminal of
     * the restart command takes its place.
     */
    record Terminal(int statusFlags, int terminal) implements OpenDescription {}

    /** One side of a pseudo-terminal whose master is in the tree, see pty(7). */
    sealed interface PseudoTerminal extends OpenDescription {
        /** N of /dev/pts/N. */
        int number();

        /**
         * @param termios {@code struct termios2} as TCGETS2 returned it
         * @param windowSize {@code struct winsize}
         * @param packetMode TIOCPKT
         * @param locked TIOCSPTLCK
         * @param hungUp whether the slave was opened, and closed by all
         * @param session session whose controlling terminal it is, 0 for none
         * @param foreground process group in the foreground, 0 for none
         */
        record Master(
                int statusFlags,
                int number,
                byte[] termios,
                byte[] windowSize,
                boolean packetMode,
                boolean locked,
                boolean hungUp,
                int session,
                int foreground)
                implements PseudoTerminal {}

        record Slave(int statusFlags, int number) implements PseudoTerminal {}
    }

    /**
     * A descriptor whose far end lies outside the tree and that the restart command's own descriptor of the same role
     * replaces: {@code role} is 0, 1 or 2 for standard input, output, error. Example: output piped into a pager.
     */
    record External(int statusFlags, int role, String what) implements OpenDescription {}
}
