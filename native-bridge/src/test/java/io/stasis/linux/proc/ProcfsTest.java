package io.stasis.linux.proc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcfsTest {
    private static final int SIGKILL = 9;
    private static final int WALL = 0x40000000;

    @TempDir
    Path directory;

    private Pid pid;

    @BeforeEach
    void startASleeperWithAnOddName() throws Exception {
        Path program = directory.resolve("od ) R 1 (d");
        Files.copy(Path.of("/bin/sleep"), program);
        pid = new Pid(Libc.spawn(program.toString(), "1000"));
        long deadline = System.nanoTime() + 5_000_000_000L;
        while (ProcFiles.currentSystemCall(pid, pid.leader()) != SystemCall.CLOCK_NANOSLEEP) {
            assertThat(System.nanoTime()).isLessThan(deadline);
        }
    }

    @AfterEach
    void end() {
        Libc.call(SystemCall.KILL, pid.value(), SIGKILL);
        Libc.call(SystemCall.WAIT4, pid.value(), 0, WALL, 0);
    }

    @Test
    void aNameWithBlanksAndParenthesesIsReadRightly() {
        ProcStat stat = ProcStat.read(pid);
        assertThat(stat.comm()).isEqualTo("od ) R 1 (d");
        assertThat(stat.state()).isEqualTo('S');
        assertThat(stat.ppid()).isEqualTo((int) ProcessHandle.current().pid());
        assertThat(stat.numThreads()).isEqualTo(1);
        assertThat(stat.exitSignal()).isEqualTo(17);
    }

    @Test
    void statusTellsIdsSignalsAndCapabilities() {
        ProcStatus own = ProcStatus.read(new Pid((int) ProcessHandle.current().pid()));
        ProcStatus status = ProcStatus.read(pid);
        assertThat(status.uids()).isEqualTo(own.uids());
        assertThat(status.capBnd()).isEqualTo(own.capBnd());
        assertThat(status.sigCgt()).isZero();
        assertThat(status.sigBlk()).isZero();
        assertThat(status.nspid()[status.nspid().length - 1]).isPositive();
    }

    @Test
    void mappingsCoverTheProgramAndTheKernelsOwn() {
        var mappings = Mappings.read(pid);
        assertThat(mappings).extracting(MappingInfo::path).contains("[vdso]", "[stack]", "[heap]");
        assertThat(mappings)
                .anySatisfy(mapping -> assertThat(mapping.path()).endsWith("od ) R 1 (d"))
                .allSatisfy(mapping -> assertThat(mapping.size() % 4096).isZero());
        MappingInfo stack = mappings.stream()
                .filter(mapping -> mapping.path().equals("[stack]"))
                .findFirst()
                .orElseThrow();
        assertThat(stack.hasVmFlag("gd")).isTrue();
        assertThat(Mappings.readMaps(pid)).hasSameSizeAs(mappings);
    }

    @Test
    void descriptorsShowWhereTheyLead() {
        assertThat(FdTable.list(pid)).contains(0, 1, 2);
        FdInfo info = FdInfo.read(pid, 0);
        assertThat(info.flags() & Fcntl.O_ACCMODE).isBetween(0, 2);
    }

    @Test
    void aDeletedProgramIsToldFromAnOddlyNamedOne() throws Exception {
        assertThat(ProcLinks.exe(pid).deleted()).isFalse();
        Files.delete(directory.resolve("od ) R 1 (d"));
        ProcLinks.Target target = ProcLinks.exe(pid);
        assertThat(target.deleted()).isTrue();
        assertThat(target.path()).endsWith("od ) R 1 (d");
    }

    @Test
    void threadsChildrenAndEnvironmentAreFound() {
        assertThat(Tasks.threads(pid)).containsExactly(pid.value());
        assertThat(Tasks.childrenOf(new Pid((int) ProcessHandle.current().pid())))
                .contains(pid.value());
        assertThat(ProcessScan.all()).contains(pid.value());
        assertThat(ProcessScan.hasEnvironment(pid, "NO_SUCH_VARIABLE=1")).isFalse();
        assertThat(ProcFiles.cmdline(pid)).endsWith("1000");
    }

    @Test
    void aProcessThatIsGoneIsToldAsSuch() {
        end();
        assertThat(ProcStat.find(pid)).isEmpty();
        assertThat(ProcStatus.find(pid, new Tid(pid.value()))).isEmpty();
        assertThat(Tasks.childrenOf(pid)).isEmpty();
        assertThatThrownBy(() -> ProcStat.read(pid)).isInstanceOf(NoSuchProcessException.class);
    }

    @Test
    void posixTimersAreParsed() {
        byte[] text = """
                ID: 4
                signal: 32/0000556ddfc9e460
                notify: signal/tid.21366
                ClockID: 7
                ID: 2
                signal: 0/fffffffffffffffe
                notify: none/pid.21365
                ClockID: -6
                """.getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        assertThat(ProcFiles.parsePosixTimers(ProcText.of(text)))
                .containsExactly(
                        new ProcFiles.PosixTimer(4, 32, 0x556ddfc9e460L, 4, 21366, 7),
                        new ProcFiles.PosixTimer(2, 0, -2, 1, 21365, -6));
    }
}
