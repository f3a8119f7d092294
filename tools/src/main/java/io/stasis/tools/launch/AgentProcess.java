package io.stasis.tools.launch;

import io.stasis.client.ExitCode;
import io.stasis.client.StasisClient;
import io.stasis.client.StasisException;
import io.stasis.client.StateDirectory;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The process behind the agent's socket, whatever its version: the kernel tells who listens there, see unix(7). */
public final class AgentProcess {
    private static final int AF_UNIX = 1;
    private static final int SOCK_STREAM_CLOEXEC = 1 | 02000000;
    private static final int SOL_SOCKET = 1;
    private static final int SO_PEERCRED = 17;
    private static final int SIGTERM = 15;
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(15);

    private final StateDirectory home;

    public AgentProcess(StateDirectory home) {
        this.home = home;
    }

    /**
     * Ends the agent and waits until it is gone. Running programs are not touched.
     *
     * @return its pid; empty when none served
     */
    public OptionalInt stop() {
        OptionalInt pid = pid();
        if (pid.isEmpty()) {
            return pid;
        }
        try {
            StasisClient.of(home).stop();
        } catch (StasisException e) {
            // One of another version may not understand the request.
            Libc.check(
                    Libc.call(SystemCall.KILL, pid.getAsInt(), SIGTERM), "ending the agent, process " + pid.getAsInt());
        }
        long deadline = System.nanoTime() + LIMIT_NANOS;
        while (Libc.call(SystemCall.KILL, pid.getAsInt(), 0) == 0) {
            if (System.nanoTime() > deadline) {
                throw new StasisException(
                        "failed",
                        ExitCode.FAILED,
                        "the agent, process " + pid.getAsInt() + ", did not end within 15 seconds; its log is "
                                + home.agentLog());
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        return pid;
    }

    private OptionalInt pid() {
        ByteBuffer address = Libc.buffer(110);
        address.putShort(0, (short) AF_UNIX);
        byte[] path = home.socket().toString().getBytes(StandardCharsets.UTF_8);
        if (path.length > 107) {
            return OptionalInt.empty();
        }
        address.put(2, path);
        ByteBuffer credentials = Libc.buffer(12);
        ByteBuffer length = Libc.buffer(4);
        length.putInt(0, credentials.capacity());
        try (Fd socket = new Fd((int)
                Libc.check(Libc.call(SystemCall.SOCKET, AF_UNIX, SOCK_STREAM_CLOEXEC, 0), "socket for the agent"))) {
            long connected = Libc.call(SystemCall.CONNECT, socket.value(), Libc.address(address), address.capacity());
            if (Libc.isError(connected)) {
                return OptionalInt.empty();
            }
            Libc.check(
                    Libc.call(
                            SystemCall.GETSOCKOPT,
                            socket.value(),
                            SOL_SOCKET,
                            SO_PEERCRED,
                            Libc.address(credentials),
                            Libc.address(length),
                            0),
                    "SO_PEERCRED of " + home.socket());
            return OptionalInt.of(credentials.getInt(0));
        } catch (KernelException e) {
            throw new StasisException("failed", ExitCode.FAILED, e.getMessage(), e);
        } finally {
            Reference.reachabilityFence(address);
            Reference.reachabilityFence(length);
        }
    }
}
