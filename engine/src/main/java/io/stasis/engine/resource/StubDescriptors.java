package io.stasis.engine.resource;

import io.stasis.linux.Fd;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The descriptors of a stopped process, to be used here through copies that share their open file descriptions. */
public final class StubDescriptors implements AutoCloseable {
    private final Pid pid;
    private final int base;
    private final Fd pidfd;

    /** Of a process of which single descriptors are wanted. */
    public StubDescriptors(int pid) {
        this(pid, 0);
    }

    /** @param base descriptor of the first open file description of an image */
    StubDescriptors(int pid, int base) {
        this.pid = new Pid(pid);
        this.base = base;
        this.pidfd = PidFd.open(this.pid);
    }

    /** A duplicate of what leads to a description of the image; the caller closes it. */
    public Fd description(int index) {
        return copy(base + index);
    }

    /** A duplicate of the process's descriptor; the caller closes it. */
    public Fd copy(int fd) {
        return PidFd.getFd(pidfd, fd);
    }

    /** Opens what the process's descriptor leads to once more, which makes a new description. */
    public Fd reopen(int fd, int flags) {
        byte[] path = ("/proc/" + pid + "/fd/" + fd + "\0").getBytes(StandardCharsets.US_ASCII);
        ByteBuffer buffer = Libc.buffer(path.length);
        buffer.put(0, path);
        long result = Libc.call(SystemCall.OPENAT, Fcntl.AT_FDCWD, Libc.address(buffer), flags | Fcntl.O_CLOEXEC, 0);
        return new Fd((int) Libc.check(result, "open descriptor " + fd + " of process " + pid + " again"));
    }

    @Override
    public void close() {
        pidfd.close();
    }
}
