package io.stasis.linux.ptrace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.proc.MappingInfo;
import io.stasis.linux.proc.Mappings;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.ptrace.RemoteProcess.VdsoMapping;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RemoteProcessTest {
    private static final int SIGKILL = 9;
    private static final int WALL = 0x40000000;

    private int pid;
    private Tracee tracee;
    private ProcessMemory memory;
    private ThreadContext context;

    @BeforeEach
    void freezeASleeper() {
        pid = Libc.spawn("/bin/sleep", "1000");
        tracee = Tracee.seize(new Tid(pid), 0);
        awaitBlocked();
        tracee.interrupt();
        assertThat(tracee.awaitFrozen(System.nanoTime() + 5_000_000_000L)).isPresent();
        memory = ProcessMemory.open(new Pid(pid));
        context = new ThreadContext(tracee, tracee.registers(), tracee.signalMask(), pid, pid);
    }

    /** In its nanosleep: a process that has just been spawned still runs its loader. */
    private void awaitBlocked() {
        long deadline = System.nanoTime() + 5_000_000_000L;
        while (io.stasis.linux.proc.ProcFiles.currentSystemCall(new Pid(pid), new Tid(pid))
                != SystemCall.CLOCK_NANOSLEEP) {
            assertThat(System.nanoTime()).isLessThan(deadline);
            Thread.onSpinWait();
        }
    }

    @AfterEach
    void end() {
        memory.close();
        Libc.call(SystemCall.KILL, pid, SIGKILL);
        Libc.call(SystemCall.WAIT4, pid, 0, WALL, 0);
    }

    private RemoteProcess open() {
        VdsoMapping vdso = null;
        for (MappingInfo mapping : Mappings.readMaps(new Pid(pid))) {
            if (mapping.path().equals("[vdso]")) {
                vdso = new VdsoMapping(mapping.start(), mapping.end());
            }
        }
        return RemoteProcess.open(
                new Pid(pid),
                memory,
                vdso,
                context,
                ProcStatus.read(new Pid(pid)).sigCgt());
    }

    @Test
    void aTableOfCallsIsMadeInTheTargetAndResultsComeBack() {
        try (RemoteProcess remote = open()) {
            CallTable calls = new CallTable();
            int getpid = calls.query(SystemCall.GETPID);
            long name = calls.reserve(400);
            calls.must("ask for the system's name", SystemCall.UNAME, name);
            int bad = calls.query(SystemCall.CLOSE, 12345);
            var results = remote.run(context, calls);
            assertThat(results.result(getpid)).isEqualTo(pid);
            assertThat(new String(results.data(name, 5), java.nio.charset.StandardCharsets.US_ASCII))
                    .isEqualTo("Linux");
            assertThat(results.result(bad)).isEqualTo(-9);
        }
    }

    @Test
    void aResultBecomesAnArgumentOfALaterCall() {
        try (RemoteProcess remote = open()) {
            CallTable calls = new CallTable();
            int opened = calls.must("open /dev/null", SystemCall.OPENAT, -100, calls.string("/dev/null"), 2, 0);
            int moved = calls.must("move it", SystemCall.DUP3, 0, 77, 0);
            calls.forward(opened, moved, 0);
            calls.must("close it", SystemCall.CLOSE_RANGE, 3, 76, 0);
            var results = remote.run(context, calls);
            assertThat(results.result(moved)).isEqualTo(77);
            assertThat(java.nio.file.Path.of("/proc/" + pid + "/fd/77")).isSymbolicLink();
        }
    }

    @Test
    void aCallThatMustSucceedEndsTheTableAndSaysWhy() {
        try (RemoteProcess remote = open()) {
            CallTable calls = new CallTable();
            calls.query(SystemCall.GETPID);
            calls.must("open a file that is not there", SystemCall.OPENAT, -100, calls.string("/no/such"), 0, 0);
            calls.query(SystemCall.GETPID);
            assertThatThrownBy(() -> remote.run(context, calls))
                    .isInstanceOf(KernelException.class)
                    .hasMessageContaining("open a file that is not there (openat)")
                    .hasMessageContaining("ENOENT");
        }
    }

    @Test
    void everythingIsAsItWasAfterClose() {
        List<MappingInfo> before = Mappings.readMaps(new Pid(pid));
        byte[] registers = tracee.registers().toBytes();
        long block;
        try (RemoteProcess remote = open()) {
            block = remote.block().value();
            CallTable calls = new CallTable();
            calls.query(SystemCall.GETPPID);
            remote.run(context, calls);
        }
        assertThat(Mappings.readMaps(new Pid(pid))).isEqualTo(before);
        assertThat(tracee.registers().toBytes()).isEqualTo(registers);
        assertThat(tracee.signalMask()).isEqualTo(context.signalMask());
        assertThat(memory.readLong(block)).isZero();
    }

    @Test
    void theInterruptedSleepGoesOnAfterDetach() {
        try (RemoteProcess remote = open()) {
            CallTable calls = new CallTable();
            calls.query(SystemCall.GETPPID);
            remote.run(context, calls);
        }
        tracee.detach(0);
        long deadline = System.nanoTime() + 5_000_000_000L;
        long call;
        do {
            call = io.stasis.linux.proc.ProcFiles.currentSystemCall(new Pid(pid), new Tid(pid));
            assertThat(System.nanoTime()).isLessThan(deadline);
        } while (call != SystemCall.RESTART_SYSCALL && call != SystemCall.CLOCK_NANOSLEEP);
        assertThat(ProcStatus.read(new Pid(pid)).tracerPid()).isZero();
    }
}
