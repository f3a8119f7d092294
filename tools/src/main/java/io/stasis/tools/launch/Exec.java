package io.stasis.tools.launch;

import io.stasis.linux.Errno;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * Makes this process the user's program by execve(2): same pid, parent, terminal and limits, and everything that the JVM
 * changed for itself put back.
 *
 * <p>After the call nothing of the JVM remains: the kernel ends its threads, unmaps its memory and resets the signals it
 * caught. What would survive is undone here: descriptors it opened are closed on exec, signals that were ignored when
 * the command was started are ignored again, the signal mask and the core dump filter are as they were.
 */
public final class Exec {
    private static final int F_SETFD = 2;
    private static final int FD_CLOEXEC = 1;
    private static final int SIG_SETMASK = 2;
    private static final int PR_SET_PTRACER = 0x59616d61;
    private static final int AT_FDCWD = -100;
    private static final int X_OK = 1;
    private static final int ENOEXEC = 8;
    private static final int LAST_SIGNAL = 64;

    private final List<byte[]> command;
    private final ProgramEnvironment environment;
    private final InheritedDescriptors inherited;

    /**
     * @param words how many of the last command line arguments are the program and its arguments
     */
    public Exec(int words, ProgramEnvironment environment, InheritedDescriptors inherited) {
        this.command = Bytes.lastArguments(words);
        this.environment = environment;
        this.inherited = inherited;
    }

    /** The program is not there ({@link #status} 127) or cannot be run (126), as a shell would say. */
    public static final class CannotRun extends Exception {
        private static final long serialVersionUID = 1;

        private final int status;

        CannotRun(String program, int errno) {
            super("cannot run " + program + ": " + Errno.describe(errno));
            this.status = errno == Errno.ENOENT ? 127 : 126;
        }

        public int status() {
            return status;
        }
    }

    /**
     * The files that execvp(3) would try, in order; those without permission to execute left out.
     *
     * @throws CannotRun when there is none
     */
    public List<byte[]> candidates() throws CannotRun {
        byte[] program = command.getFirst();
        List<byte[]> places = new ArrayList<>();
        if (Bytes.text(program).contains("/") || program.length == 0) {
            places.add(program);
        } else {
            environment.path().forEach(directory -> places.add(Bytes.join(directory, program)));
        }
        List<byte[]> executable = new ArrayList<>();
        int worst = Errno.ENOENT;
        for (byte[] place : places) {
            ByteBuffer path = Bytes.nativeString(place);
            long result = Libc.call(SystemCall.FACCESSAT, AT_FDCWD, Libc.address(path), X_OK, 0);
            Reference.reachabilityFence(path);
            if (result == 0 && !Files.isDirectory(Path.of(Bytes.text(place)))) {
                executable.add(place);
            } else if (result == 0 || result == -Errno.EACCES) {
                worst = Errno.EACCES;
            }
        }
        if (executable.isEmpty()) {
            throw new CannotRun(Bytes.text(program), worst);
        }
        return executable;
    }

    /**
     * Becomes the program. Returns only by an exception.
     *
     * @param cookie value of STASIS_COOKIE
     */
    public void become(List<byte[]> candidates, String cookie) throws CannotRun {
        NativeStrings arguments = new NativeStrings(command);
        NativeStrings variables =
                new NativeStrings(environment.withCookie(cookie).entries());
        allowTheAgentToTrace();
        restoreCoreDumpFilter();
        closeOwnDescriptorsOnExec();
        restoreIgnoredSignals();
        restoreSignalMask();
        int error = Errno.ENOENT;
        for (byte[] candidate : candidates) {
            ByteBuffer path = Bytes.nativeString(candidate);
            long result = Libc.call(SystemCall.EXECVE, Libc.address(path), arguments.address(), variables.address());
            if (result == -ENOEXEC) {
                result = becomeScript(candidate, variables);
            }
            Reference.reachabilityFence(path);
            error = (int) -result;
            if (error != Errno.ENOENT && error != Errno.EACCES && error != Errno.ENOTDIR) {
                break;
            }
        }
        Reference.reachabilityFence(arguments);
        Reference.reachabilityFence(variables);
        throw new CannotRun(Bytes.text(command.getFirst()), error);
    }

    /** A file without a magic number is a script for the shell, see execvp(3). */
    private long becomeScript(byte[] file, NativeStrings variables) {
        byte[] shell = "/bin/sh".getBytes(StandardCharsets.US_ASCII);
        List<byte[]> words = new ArrayList<>(List.of(shell, file));
        words.addAll(command.subList(1, command.size()));
        NativeStrings arguments = new NativeStrings(words);
        ByteBuffer path = Bytes.nativeString(shell);
        long result = Libc.call(SystemCall.EXECVE, Libc.address(path), arguments.address(), variables.address());
        Reference.reachabilityFence(path);
        Reference.reachabilityFence(arguments);
        return result;
    }

    /** Where Yama (ptrace_scope 1) lets only ancestors trace, the agent of an ordinary user needs this. */
    private static void allowTheAgentToTrace() {
        if (read("/proc/sys/kernel/yama/ptrace_scope").startsWith("1")) {
            Libc.call(SystemCall.PRCTL, PR_SET_PTRACER, -1);
        }
    }

    /** The JVM adds file-backed memory to the filter at its start; the launcher script has read it before. */
    private static void restoreCoreDumpFilter() {
        String filter = System.getProperty("stasis.coredump");
        if (filter != null) {
            try {
                Files.writeString(Path.of("/proc/self/coredump_filter"), "0x" + filter, StandardOpenOption.WRITE);
            } catch (IOException e) {
                throw new IllegalStateException("cannot write /proc/self/coredump_filter: " + e.getMessage(), e);
            }
        }
    }

    private void closeOwnDescriptorsOnExec() {
        for (int fd : InheritedDescriptors.open()) {
            if (!inherited.contains(fd)) {
                Libc.call(SystemCall.FCNTL, fd, F_SETFD, FD_CLOEXEC);
            }
        }
    }

    /** execve(2) resets caught signals to the default, also those that were ignored before the JVM caught them. */
    private static void restoreIgnoredSignals() {
        String before = System.getProperty("stasis.ignored");
        if (before == null) {
            return;
        }
        long wanted = Long.parseUnsignedLong(before, 16);
        long now = Long.parseUnsignedLong(status("/proc/self/status", "SigIgn:"), 16);
        ByteBuffer action = Libc.buffer(32);
        for (int signal = 1; signal <= LAST_SIGNAL; signal++) {
            boolean ignore = (wanted >>> signal - 1 & 1) != 0;
            boolean ignored = (now >>> signal - 1 & 1) != 0;
            if (ignore != ignored) {
                action.putLong(0, ignore ? 1 : 0); // SIG_IGN, SIG_DFL
                Libc.call(SystemCall.RT_SIGACTION, signal, Libc.address(action), 0, 8);
            }
        }
        Reference.reachabilityFence(action);
    }

    /** The thread that came through execve has the mask that the JVM's own threads were given others for. */
    private static void restoreSignalMask() {
        String process = Long.toString(ProcessHandle.current().pid());
        ByteBuffer mask = Libc.buffer(8);
        mask.putLong(0, Long.parseUnsignedLong(status("/proc/self/task/" + process + "/status", "SigBlk:"), 16));
        Libc.call(SystemCall.RT_SIGPROCMASK, SIG_SETMASK, Libc.address(mask), 0, 8);
        Reference.reachabilityFence(mask);
    }

    private static String status(String file, String field) {
        return read(file)
                .lines()
                .filter(line -> line.startsWith(field))
                .map(line -> line.substring(field.length()).strip())
                .findFirst()
                .orElse("0");
    }

    private static String read(String file) {
        try {
            return Files.readString(Path.of(file));
        } catch (IOException e) {
            // Not every kernel has every file; a missing one has nothing to restore.
            return "";
        }
    }

    /** A null-terminated array of C strings. */
    private static final class NativeStrings {
        private final List<ByteBuffer> strings;
        private final ByteBuffer pointers;

        NativeStrings(List<byte[]> values) {
            strings = values.stream().map(Bytes::nativeString).toList();
            pointers = Libc.buffer(8 * (strings.size() + 1));
            for (int i = 0; i < strings.size(); i++) {
                pointers.putLong(8 * i, Libc.address(strings.get(i)));
            }
        }

        long address() {
            return Libc.address(pointers);
        }
    }
}
