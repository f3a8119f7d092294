package io.stasis.linux.ptrace;

import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.ptrace.Registers.Register;
import java.nio.ByteBuffer;

/**
 * Machine code for the first process of a pid namespace, see pid_namespaces(7): it is the parent of orphans, and the
 * namespace ends with it. It must ignore SIGCHLD, so that the kernel forgets its dead children by itself.
 *
 * <pre>
 *   poll(pidfd_open(r12), POLLIN)        until the process with the id in r12 has ended
 *   wait4(-1) until ECHILD               until all that it left have ended too
 *   exit_group(0)
 * </pre>
 */
public final class NamespaceInit {
    /** The name (comm) by which such an init is known. */
    public static final String NAME = "stasis-init";

    private static final byte[] CODE = bytes(
            "4489e7", // mov edi, r12d
            "31f6", // xor esi, esi
            "b8b2010000", // mov eax, SYS_pidfd_open
            "0f05", // syscall
            "85c0", // test eax, eax
            "7824", // js wait: it has ended already
            "488d3d41000000", // lea rdi, [pollfd]
            "8907", // mov [rdi], eax
            "c7470401000000", // mov dword [rdi + 4], POLLIN
            "be01000000", // poll: mov esi, 1
            "83caff", // or edx, -1
            "b807000000", // mov eax, SYS_poll
            "0f05", // syscall
            "83f8fc", // cmp eax, -EINTR
            "74ec", // je poll
            "bfffffffff", // wait: mov edi, -1
            "31f6", // xor esi, esi
            "ba00000040", // mov edx, __WALL
            "4531d2", // xor r10d, r10d
            "b83d000000", // mov eax, SYS_wait4
            "0f05", // syscall
            "83f8f6", // cmp eax, -ECHILD
            "75e5", // jne wait
            "31ff", // xor edi, edi
            "b8e7000000", // mov eax, SYS_exit_group
            "0f05", // syscall
            "0000000000000000"); // pollfd

    private NamespaceInit() {}

    /**
     * Gives a stopped process its work; it runs when it is detached.
     *
     * @param address of executable and writable memory of the process
     * @param root id, in the namespace, of the process with whose end the namespace may end
     */
    public static void prepare(ProcessMemory memory, Tracee init, long address, int root) {
        ByteBuffer code = io.stasis.linux.libc.Libc.buffer(CODE.length);
        code.put(CODE).flip();
        memory.write(address, code);
        init.setSignalMask(~0L);
        init.setRegisters(init.registers()
                .with(Register.RIP, address)
                .with(Register.R12, root)
                .with(Register.ORIG_RAX, -1));
    }

    private static byte[] bytes(String... instructions) {
        return java.util.HexFormat.of().parseHex(String.join("", instructions));
    }
}
