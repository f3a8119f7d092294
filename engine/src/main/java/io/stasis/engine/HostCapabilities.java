package io.stasis.engine;

import io.stasis.engine.Engine.HostCapability;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Capability;
import io.stasis.linux.libc.Kcmp;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.SystemInfo;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;

/** What this host and user can do, line by line, for {@code stasis check}. */
final class HostCapabilities {
    private HostCapabilities() {}

    static List<HostCapability> all() {
        List<HostCapability> all = new ArrayList<>();
        long user = Libc.call(SystemCall.GETEUID);
        boolean others = SystemInfo.hasCapability(Capability.CAP_SYS_PTRACE);
        boolean pids = SystemInfo.hasCapability(Capability.CAP_CHECKPOINT_RESTORE)
                || SystemInfo.hasCapability(Capability.CAP_SYS_ADMIN);
        all.add(new HostCapability(
                "kernel", true, SystemInfo.kernelRelease() + " on " + System.getProperty("os.arch")));
        all.add(new HostCapability("checkpoint own processes", yama(others), yamaDetail()));
        all.add(new HostCapability(
                "checkpoint other users' processes",
                others,
                others ? "CAP_SYS_PTRACE" : "user " + user + " lacks CAP_SYS_PTRACE"));
        all.add(new HostCapability(
                "restart with the original pids",
                pids,
                pids ? "CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN" : "user " + user + " lacks CAP_CHECKPOINT_RESTORE"));
        all.add(new HostCapability(
                "user namespaces",
                SystemInfo.userNamespacesAllowed(),
                SystemInfo.userNamespacesAllowed() ? "may be made" : "switched off on this host"));
        all.add(works("share descriptors (kcmp)", HostCapabilities::compareSelf));
        all.add(works("fetch descriptors (pidfd_getfd)", HostCapabilities::fetchOwn));
        return all;
    }

    private static boolean yama(boolean privileged) {
        OptionalInt scope = SystemInfo.yamaPtraceScope();
        return scope.isEmpty() || scope.getAsInt() == 0 || (privileged && scope.getAsInt() < 3);
    }

    private static String yamaDetail() {
        OptionalInt scope = SystemInfo.yamaPtraceScope();
        return scope.isEmpty()
                ? "no restriction by Yama"
                : "kernel.yama.ptrace_scope is " + scope.getAsInt()
                        + (scope.getAsInt() == 0 ? "" : "; 0 lets an ordinary user trace all own processes");
    }

    private static HostCapability works(String what, Runnable trial) {
        try {
            trial.run();
            return new HostCapability(what, true, "works");
        } catch (KernelException e) {
            return new HostCapability(what, false, e.getMessage());
        }
    }

    private static void compareSelf() {
        Pid self = new Pid((int) Libc.call(SystemCall.GETPID));
        Kcmp.compare(self, self, Kcmp.KCMP_VM, 0, 0);
    }

    private static void fetchOwn() {
        Pid self = new Pid((int) Libc.call(SystemCall.GETPID));
        try (var pidfd = PidFd.open(self);
                var copy = PidFd.getFd(pidfd, 1)) {
            assert copy.value() >= 0;
        }
    }
}
