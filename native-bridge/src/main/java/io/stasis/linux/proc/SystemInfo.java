package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.OptionalInt;

/** What this host is and permits: {@code /proc/sys}, the auxiliary vector, and our own credentials. */
public final class SystemInfo {
    /** arch_prctl(2) code of {@code <asm/prctl.h>}: the extended state components that user space may use. */
    private static final int ARCH_GET_XCOMP_SUPP = 0x1021;

    private static final int AT_PAGESZ = 6;
    private static final int AT_CLKTCK = 17;

    private SystemInfo() {}

    /** As gethostname(2), of this process's UTS namespace. */
    public static String hostName() {
        return line("/proc/sys/kernel/hostname");
    }

    /** Such as "6.18.4". */
    public static String kernelRelease() {
        return line("/proc/sys/kernel/osrelease");
    }

    /** A UUID that changes at every boot. */
    public static String bootId() {
        return line("/proc/sys/kernel/random/boot_id");
    }

    /** The largest pid plus 1. */
    public static int pidMax() {
        return Procfs.read("/proc/sys/kernel/pid_max").integer();
    }

    /** Ticks a second of the times in {@code /proc/P/stat}. */
    public static int clockTicks() {
        return (int) auxiliary(AT_CLKTCK, 100);
    }

    /** Bytes. */
    public static int pageSize() {
        return (int) auxiliary(AT_PAGESZ, 4096);
    }

    /**
     * The components of the processor's extended state that programs may use, as in XCR0: bit 0 x87, 1 SSE, 2 AVX, 5-7
     * AVX-512, 9 protection keys, 17-18 AMX. Before Linux 5.16 it is told from the flags of {@code /proc/cpuinfo}.
     */
    public static long xsaveFeatures() {
        ByteBuffer mask = Libc.buffer(8);
        long result = Libc.call(SystemCall.ARCH_PRCTL, ARCH_GET_XCOMP_SUPP, Libc.address(mask));
        return Libc.isError(result) ? featuresOfCpuinfo(Procfs.read("/proc/cpuinfo")) : mask.getLong(0);
    }

    static long featuresOfCpuinfo(ProcText text) {
        while (!text.atEnd()) {
            if (text.key().equals("flags")) {
                String flags = " " + text.restOfLine() + " ";
                long mask = 0x3;
                mask |= flags.contains(" avx ") ? 0x4 : 0;
                mask |= flags.contains(" avx512f ") ? 0xe0 : 0;
                mask |= flags.contains(" ospke ") ? 0x200 : 0;
                mask |= flags.contains(" amx_tile ") ? 0x60000 : 0;
                return mask;
            }
            text.skipLine();
        }
        return 0x3;
    }

    /** Whether we hold a capability, see {@link io.stasis.linux.libc.Capability}, in our effective set. */
    public static boolean hasCapability(int capability) {
        return self().hasCapability(capability);
    }

    /** Our effective capabilities, one bit each. */
    public static long capabilities() {
        return self().capEff();
    }

    /** Yama's {@code ptrace_scope}: 0 own processes, 1 descendants, 2 CAP_SYS_PTRACE, 3 nobody; empty without Yama. */
    public static OptionalInt yamaPtraceScope() {
        return number("/proc/sys/kernel/yama/ptrace_scope");
    }

    /** Whether the host's settings let us, privileged or not, make a user namespace. */
    public static boolean userNamespacesAllowed() {
        boolean privileged = hasCapability(io.stasis.linux.libc.Capability.CAP_SYS_ADMIN);
        return number("/proc/sys/user/max_user_namespaces").orElse(0) > 0
                && (privileged
                        || number("/proc/sys/kernel/unprivileged_userns_clone").orElse(1) != 0
                                && number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                                                .orElse(0)
                                        == 0);
    }

    private static ProcStatus self() {
        // Not /proc/self: capabilities belong to threads, and those of a JVM are all alike.
        return ProcStatus.read(new Pid((int) Libc.call(SystemCall.GETPID)));
    }

    private static String line(String path) {
        return Procfs.read(path).restOfLine();
    }

    private static OptionalInt number(String path) {
        return Procfs.tryRead(path) <= 0
                ? OptionalInt.empty()
                : OptionalInt.of(Procfs.lastText().integer());
    }

    private static long auxiliary(long type, long otherwise) {
        ProcText text = Procfs.read("/proc/self/auxv");
        ByteBuffer pairs = ByteBuffer.wrap(text.bytes, 0, text.length).order(ByteOrder.nativeOrder());
        while (pairs.remaining() >= 16) {
            if (pairs.getLong() == type) {
                return pairs.getLong();
            }
            pairs.getLong();
        }
        return otherwise;
    }
}
