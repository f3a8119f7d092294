package io.stasis.image.model;

import java.util.List;

/**
 * The whole tree of processes of one host in one generation, with what they share.
 *
 * @param root pid of the tree's root process
 * @param processes live processes' pids, parents before children; the records lie in files of their own
 * @param zombies processes that ended but were not waited for
 * @param descriptions open file descriptions; an index here is an identity
 * @param pipes pipes and FIFOs with their contents
 * @param sharedObjects memory objects shared between mappings
 * @param terminals terminals outside the tree
 * @param owners descriptions on which F_SETOWN, F_SETSIG or O_ASYNC was set
 * @param savedFiles small files that were mapped shared and writable, put back when they are missing
 * @param namelessFiles regular files without a path that are open or mapped; an index here is an identity
 * @param segments which of the shared objects are System V shared memory
 * @param locks locks and leases on files
 * @param systemV System V semaphore sets and message queues
 */
public record ComputationImage(
        int root,
        List<Integer> processes,
        List<Zombie> zombies,
        List<OpenDescription> descriptions,
        List<Pipe> pipes,
        List<SharedObject> sharedObjects,
        List<Terminal> terminals,
        List<SavedFile> savedFiles,
        List<SignalOwner> owners,
        List<NamelessFile> namelessFiles,
        List<Segment> segments,
        List<FileLock> locks,
        List<SystemVObject> systemV) {

    /** A zombie; {@code waitStatus} is the status word wait4(2) will give to its parent. */
    public record Zombie(ProcessImage.Identity identity, int waitStatus, int[] userIds, int[] groupIds) {}

    /**
     * Who gets a signal of an open file description, see fcntl(2).
     *
     * @param description index of the description
     * @param type F_OWNER_TID (0), F_OWNER_PID (1) or F_OWNER_PGRP (2)
     * @param id thread, process or group; 0 for nobody
     * @param signal F_SETSIG, 0 for SIGIO
     * @param asynchronous O_ASYNC
     */
    public record SignalOwner(int description, int type, int id, int signal, boolean asynchronous) {}

    /**
     * A regular file that no path leads to, with its content: unlinked (inode(7)), made by O_TMPFILE or memfd_create(2).
     *
     * @param file its last path; "/memfd:NAME" for memfd_create; "#INODE" as the name of one that O_TMPFILE made
     * @param user st_uid, -1 when it is not known
     * @param group st_gid, -1 when it is not known
     * @param memory whether memfd_create made it
     * @param seals F_GET_SEALS of fcntl(2), 0 where there can be none
     * @param pageFile page file with its bytes by file offset, relative to the generation directory
     */
    public record NamelessFile(FileReference file, int user, int group, boolean memory, int seals, String pageFile) {}

    /**
     * A lock on a file, see flock(2) and fcntl(2).
     *
     * @param description index of the description that it was taken through
     * @param pid a process that takes it again
     * @param type as the kernel names it: POSIX, FLOCK, OFDLCK or LEASE
     * @param write exclusive, or else shared
     * @param start first byte
     * @param length in bytes, 0 up to the end of the file whatever that is
     */
    public record FileLock(int description, int pid, String type, boolean write, long start, long length) {}

    /**
     * A System V shared memory segment, see shmctl(2).
     *
     * @param object the shared object that has its content and that mappings refer to
     * @param readOnly the object stands for mappings attached with SHM_RDONLY; another may stand for the others
     * @param id shmid
     * @param key IPC_PRIVATE (0) also for a removed one
     * @param size shm_segsz in bytes
     * @param mode permissions, SHM_DEST (01000: removed) and SHM_LOCKED (02000)
     */
    public record Segment(int object, boolean readOnly, int id, int key, long size, int mode, int user, int group) {}

    /** A file with its content, at most 1 MiB. */
    public record SavedFile(FileReference file, byte[] content) {}

    /**
     * @param path path of a FIFO, null for a pipe
     * @param capacity F_GETPIPE_SZ in bytes
     * @param contents bytes in flight
     * @param packetLengths lengths of the packets in {@code contents} in packet mode (O_DIRECT), else empty
     */
    public record Pipe(FileReference path, int capacity, byte[] contents, int[] packetLengths) {}

    /**
     * @param size size of the object in bytes
     * @param pageFile page file with its bytes, relative to the generation directory
     */
    public record SharedObject(long size, String pageFile) {}

    /**
     * @param path such as /dev/pts/3
     * @param termios {@code struct termios2} as TCGETS2 returned it
     * @param windowSize {@code struct winsize}
     * @param foregroundGroup process group in the foreground, 0 when unknown
     * @param session session whose controlling terminal it is, 0 for none
     */
    public record Terminal(String path, byte[] termios, byte[] windowSize, int foregroundGroup, int session) {}
}
