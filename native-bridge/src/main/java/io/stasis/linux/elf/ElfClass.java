package io.stasis.linux.elf;

import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.Procfs;
import java.nio.ByteBuffer;

/** Word size of a program, EI_CLASS of its executable; elf(5). */
public enum ElfClass {
    BITS_32,
    BITS_64;

    /**
     * Of the program that a process executes.
     *
     * @throws KernelException ENOENT for kernel threads and zombies, ENOEXEC when it is no ELF file
     * @throws io.stasis.linux.proc.NoSuchProcessException when it is gone
     */
    public static ElfClass of(Pid pid) {
        String path = "/proc/" + pid + "/exe";
        ByteBuffer ident = Libc.buffer(8);
        try (Fd fd = Procfs.open(pid, path, Fcntl.O_RDONLY)) {
            Libc.check(Libc.call(SystemCall.PREAD64, fd.value(), Libc.address(ident), 8, 0), "reading " + path);
        }
        if (ident.getInt(0) != ElfFile.MAGIC) {
            throw new KernelException("reading the ELF header of " + path, Errno.ENOEXEC);
        }
        return ident.get(4) == 1 ? BITS_32 : BITS_64;
    }
}
