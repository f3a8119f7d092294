package io.stasis.linux.elf;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.linux.Pid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.MappingInfo;
import io.stasis.linux.proc.Mappings;
import io.stasis.linux.proc.ProcFiles;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StubProgramTest {
    private static final long PAGE = 0x30_0000_0000L;
    private static final int SIGKILL = 9;
    private static final int WALL = 0x40000000;

    @TempDir
    Path directory;

    @Test
    void theStubHasOnePageAtItsAddressAndWaits() {
        Path file = directory.resolve("stub");
        StubProgram.write(file, PAGE);
        int child = Libc.spawn(file.toString());
        try {
            Pid pid = new Pid(child);
            long deadline = System.nanoTime() + 5_000_000_000L;
            while (ProcFiles.currentSystemCall(pid, pid.leader()) != SystemCall.PAUSE) {
                assertThat(System.nanoTime()).isLessThan(deadline);
            }
            assertThat(ElfClass.of(pid)).isEqualTo(ElfClass.BITS_64);
            assertThat(Mappings.readMaps(pid))
                    .filteredOn(mapping -> mapping.path().equals(file.toString()))
                    .singleElement()
                    .satisfies(mapping -> {
                        assertThat(mapping.start()).isEqualTo(PAGE);
                        assertThat(mapping.exec()).isTrue();
                    })
                    .extracting(MappingInfo::size)
                    .isEqualTo(4096L);
        } finally {
            Libc.call(SystemCall.KILL, child, SIGKILL);
            Libc.call(SystemCall.WAIT4, child, 0, WALL, 0);
        }
    }
}
