package io.stasis.linux.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Looks at this process's own memory. */
class MemoryTest {
    private static final int PAGES = 64;
    private static final int PAGE = 4096;
    private static final Pid SELF = new Pid((int) ProcessHandle.current().pid());

    private long address;

    @BeforeEach
    void map() {
        address = Libc.check(Libc.call(SystemCall.MMAP, 0, PAGES * PAGE, 3, 0x22, -1, 0), "mmap");
        Libc.check(Libc.call(SystemCall.MADVISE, address, PAGES * PAGE, 15), "madvise"); // no huge pages
    }

    @AfterEach
    void unmap() {
        Libc.call(SystemCall.MUNMAP, address, PAGES * PAGE);
    }

    @Test
    void onlyPagesThatWereWrittenAreFound() {
        try (ProcessMemory memory = ProcessMemory.open(SELF);
                PageScan scan = PageScan.open(SELF)) {
            assertThat(scan.populated(address, address + PAGES * PAGE)).isEmpty();
            memory.writeLong(address + 3 * PAGE, 1);
            memory.writeLong(address + 4 * PAGE, 1);
            memory.writeLong(address + 9 * PAGE + 8, 1);
            assertThat(scan.populated(address, address + PAGES * PAGE))
                    .containsExactly(address + 3 * PAGE, address + 5 * PAGE, address + 9 * PAGE, address + 10 * PAGE);
        }
    }

    @Test
    void rangesAreReadOneBehindTheOther() {
        byte[] bytes = new byte[PAGES * PAGE];
        ThreadLocalRandom.current().nextBytes(bytes);
        ByteBuffer all = Libc.buffer(bytes.length);
        all.put(bytes).flip();
        try (ProcessMemory memory = ProcessMemory.open(SELF)) {
            memory.write(address, all);
            ByteBuffer read = Libc.buffer(3 * PAGE);
            memory.readVector(
                    new long[] {address + PAGE, address + 2 * PAGE, address + 7 * PAGE, address + 9 * PAGE}, read);
            byte[] got = new byte[3 * PAGE];
            read.get(0, got);
            byte[] expected = new byte[3 * PAGE];
            System.arraycopy(bytes, PAGE, expected, 0, PAGE);
            System.arraycopy(bytes, 7 * PAGE, expected, PAGE, 2 * PAGE);
            assertThat(got).isEqualTo(expected);
        }
    }

    @Test
    void memoryWithoutReadPermissionIsReadAllTheSame() {
        try (ProcessMemory memory = ProcessMemory.open(SELF)) {
            memory.writeLong(address, 42);
            Libc.check(Libc.call(SystemCall.MPROTECT, address, PAGE, 0), "mprotect");
            ByteBuffer read = Libc.buffer(PAGE);
            memory.readVector(new long[] {address, address + PAGE}, read);
            assertThat(read.getLong(0)).isEqualTo(42);
        }
    }

    @Test
    void anAddressThatIsNotMappedIsNamedInTheError() {
        unmap();
        try (ProcessMemory memory = ProcessMemory.open(SELF)) {
            assertThatThrownBy(() -> memory.readLong(address))
                    .isInstanceOf(KernelException.class)
                    .hasMessageContaining(Long.toHexString(address));
        }
    }

    @Test
    void zeroPagesAreToldFromOthers() {
        ByteBuffer buffer = Libc.buffer(2 * PAGE);
        assertThat(ZeroPages.isZero(buffer, 0)).isTrue();
        for (int position : new int[] {PAGE, PAGE + 1, 2 * PAGE - 1, PAGE + 2048}) {
            buffer.put(position, (byte) 1);
            assertThat(ZeroPages.isZero(buffer, PAGE)).isFalse();
            assertThat(ZeroPages.isZero(buffer, 0)).isTrue();
            buffer.put(position, (byte) 0);
        }
    }
}
