package io.stasis.linux.ptrace;

/** Requests, options and events of ptrace(2), {@code <linux/ptrace.h>}. */
public final class PtraceRequest {
    public static final int PTRACE_CONT = 7;
    public static final int PTRACE_GETREGS = 12;
    public static final int PTRACE_SETREGS = 13;
    public static final int PTRACE_DETACH = 17;
    public static final int PTRACE_SETOPTIONS = 0x4200;
    public static final int PTRACE_GETEVENTMSG = 0x4201;
    public static final int PTRACE_GETREGSET = 0x4204;
    public static final int PTRACE_SETREGSET = 0x4205;
    public static final int PTRACE_SEIZE = 0x4206;
    public static final int PTRACE_INTERRUPT = 0x4207;
    public static final int PTRACE_PEEKSIGINFO = 0x4209;
    public static final int PTRACE_GETSIGMASK = 0x420a;
    public static final int PTRACE_SETSIGMASK = 0x420b;
    public static final int PTRACE_SECCOMP_GET_FILTER = 0x420c;
    public static final int PTRACE_SECCOMP_GET_METADATA = 0x420d;
    public static final int PTRACE_GET_RSEQ_CONFIGURATION = 0x420f;

    public static final int PTRACE_PEEKSIGINFO_SHARED = 1;

    public static final int PTRACE_O_TRACESYSGOOD = 1;
    public static final int PTRACE_O_TRACEFORK = 2;
    public static final int PTRACE_O_TRACEVFORK = 4;
    public static final int PTRACE_O_TRACECLONE = 8;
    public static final int PTRACE_O_EXITKILL = 0x100000;

    public static final int PTRACE_O_SUSPEND_SECCOMP = 0x200000;

    public static final int PTRACE_EVENT_FORK = 1;
    public static final int PTRACE_EVENT_VFORK = 2;
    public static final int PTRACE_EVENT_CLONE = 3;
    public static final int PTRACE_EVENT_STOP = 128;

    /** Regset of the extended processor state, {@code <linux/elf.h>}. */
    public static final int NT_X86_XSTATE = 0x202;

    private PtraceRequest() {}
}
