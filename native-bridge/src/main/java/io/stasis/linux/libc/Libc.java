package io.stasis.linux.libc;

import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.stasis.linux.KernelException;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;

/**
 * The C library by JNA direct mapping (0.7 microseconds a call), and the raw system calls it has no function for.
 *
 * <p>The {@code checked} forms throw {@link KernelException}; the others return what the kernel returned, negated errno
 * included, so that hot paths allocate nothing. Memory that the kernel reads or writes is native: {@link #buffer}.
 */
public final class Libc {
    static {
        Native.register(
                Libc.class,
                NativeLibrary.getInstance("c", Map.of(Library.OPTION_CLASSLOADER, Libc.class.getClassLoader())));
    }

    private static final int CLOSE_RANGE_CLOEXEC = 4;

    private Libc() {}

    // Direct-mapped functions. syscall(2) sets errno, which JNA keeps per thread as the last error.
    private static native long syscall(long number, long a, long b, long c, long d, long e, long f);

    public static native int close(int fd);

    private static native int posix_spawn(
            int[] pid, String path, Pointer fileActions, Pointer attributes, Pointer argv, Pointer envp);

    private static native int posix_spawnattr_init(Pointer attributes);

    private static native int posix_spawnattr_destroy(Pointer attributes);

    private static native int posix_spawnattr_setflags(Pointer attributes, short flags);

    private static native int posix_spawnattr_setsigdefault(Pointer attributes, Pointer set);

    private static native int posix_spawnattr_setsigmask(Pointer attributes, Pointer set);

    /**
     * A raw system call.
     *
     * @return the result, or the negated errno
     */
    public static long call(long number, long a, long b, long c, long d, long e, long f) {
        long result = syscall(number, a, b, c, d, e, f);
        return result == -1 ? -Native.getLastError() : result;
    }

    public static long call(long number, long a, long b, long c, long d) {
        return call(number, a, b, c, d, 0, 0);
    }

    public static long call(long number, long a, long b, long c) {
        return call(number, a, b, c, 0, 0, 0);
    }

    public static long call(long number, long a, long b) {
        return call(number, a, b, 0, 0, 0, 0);
    }

    public static long call(long number, long a) {
        return call(number, a, 0, 0, 0, 0, 0);
    }

    public static long call(long number) {
        return call(number, 0, 0, 0, 0, 0, 0);
    }

    /**
     * Returns {@code result} when it is no error.
     *
     * @param what what was being done, to what
     * @throws KernelException when {@code result} is a negated errno
     */
    public static long check(long result, String what) {
        if (isError(result)) {
            throw new KernelException(what, (int) -result);
        }
        return result;
    }

    /** Whether a raw system call result is a negated errno. */
    public static boolean isError(long result) {
        return result < 0 && result >= -4095;
    }

    /** A zeroed native buffer in this machine's byte order, freed when unreachable. */
    public static ByteBuffer buffer(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    /** A native buffer with {@code text} and a terminating zero byte. */
    public static ByteBuffer string(String text) {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        return buffer(bytes.length + 1).put(bytes).rewind();
    }

    /** Native address of a direct buffer's first byte. The caller keeps the buffer reachable during the call. */
    public static long address(Buffer direct) {
        return Pointer.nativeValue(Native.getDirectBufferPointer(direct));
    }

    /** A view of this process's own memory, such as pages it mapped itself. It stays valid as long as they are mapped. */
    public static ByteBuffer memory(long address, int bytes) {
        return new Pointer(address).getByteBuffer(0, bytes).order(ByteOrder.nativeOrder());
    }

    /**
     * posix_spawn(3) of {@code path} with every signal at its default and none blocked. Of the
     * descriptors only 0, 1 and 2 are inherited. Unlike {@code ProcessBuilder} no thread waits for the child, which would take its ptrace
     * stops away.
     *
     * @return the child's pid
     */
    public static int spawn(String path, String... arguments) {
        ByteBuffer attributes = buffer(512);
        ByteBuffer all = buffer(128);
        ByteBuffer none = buffer(128);
        for (int i = 0; i < 128; i++) {
            all.put(i, (byte) 0xff);
        }
        ByteBuffer[] strings = new ByteBuffer[arguments.length + 1];
        ByteBuffer argv = buffer(8 * (arguments.length + 2));
        for (int i = 0; i < strings.length; i++) {
            strings[i] = string(i == 0 ? path : arguments[i - 1]);
            argv.putLong(8 * i, address(strings[i]));
        }
        Pointer attributesPointer = Native.getDirectBufferPointer(attributes);
        Pointer argvPointer = Native.getDirectBufferPointer(argv);
        int[] pid = new int[1];
        // A JVM opens sockets without FD_CLOEXEC; nobody started from here is to inherit anything but 0, 1 and 2.
        call(SystemCall.CLOSE_RANGE, 3, 0xffffffffL, CLOSE_RANGE_CLOEXEC);
        try {
            posix_spawnattr_init(attributesPointer);
            posix_spawnattr_setflags(attributesPointer, (short) (0x04 | 0x08)); // SETSIGDEF | SETSIGMASK
            posix_spawnattr_setsigdefault(attributesPointer, Native.getDirectBufferPointer(all));
            posix_spawnattr_setsigmask(attributesPointer, Native.getDirectBufferPointer(none));
            int error = posix_spawn(
                    pid, path, null, attributesPointer, argvPointer, argvPointer.share(8L * strings.length));
            if (error != 0) {
                throw new KernelException("posix_spawn of " + path, error);
            }
            return pid[0];
        } finally {
            posix_spawnattr_destroy(attributesPointer);
            java.lang.ref.Reference.reachabilityFence(strings);
            java.lang.ref.Reference.reachabilityFence(argv);
        }
    }
}
