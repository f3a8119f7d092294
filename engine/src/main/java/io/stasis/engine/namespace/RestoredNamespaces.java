package io.stasis.engine.namespace;

import io.stasis.linux.Pid;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.ProcessScan;
import io.stasis.linux.ptrace.NamespaceInit;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Tells pid namespaces that a restart made, in which only /proc differs from this host, from containers. */
public final class RestoredNamespaces {
    private RestoredNamespaces() {}

    /** Whether the process is in one. */
    public static boolean isOurs(Pid pid) {
        Path namespace = namespace(pid);
        for (int candidate : ProcessScan.all()) {
            Pid init = new Pid(candidate);
            if (isInit(init) && namespace != null && namespace.equals(namespace(init))) {
                return true;
            }
        }
        return false;
    }

    private static boolean isInit(Pid pid) {
        return ProcStat.find(pid)
                        .filter(stat -> stat.comm().equals(NamespaceInit.NAME))
                        .isPresent()
                && ProcStatus.find(pid)
                        .filter(status -> status.nspid()[status.nspid().length - 1] == 1)
                        .isPresent();
    }

    private static Path namespace(Pid pid) {
        try {
            return Files.readSymbolicLink(Path.of("/proc/" + pid + "/ns/pid"));
        } catch (IOException e) {
            return null; // it has ended
        }
    }
}
