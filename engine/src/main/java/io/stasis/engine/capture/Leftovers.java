package io.stasis.engine.capture;

import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.MappingInfo;
import io.stasis.linux.proc.Mappings;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.RemoteProcess;
import io.stasis.linux.ptrace.RemoteProcess.VdsoMapping;
import java.util.ArrayList;
import java.util.List;

/** Scratch memory that an agent which was killed in the middle of a checkpoint left in a process. */
final class Leftovers {
    private Leftovers() {}

    /** Unmaps it, unless a thread is still on its way back through it. */
    static void remove(FrozenProcess process) {
        List<Long> found = new ArrayList<>();
        VdsoMapping vdso = null;
        for (MappingInfo mapping : Mappings.readMaps(process.pid())) {
            if (mapping.path().equals("[vdso]")) {
                vdso = new VdsoMapping(mapping.start(), mapping.end());
            }
            // The kernel may have merged it with a neighbour, but its first page still begins the mapping or another.
            if (mapping.inode() == 0 && mapping.read() && mapping.write() && mapping.exec() && !mapping.shared()) {
                findIn(process, mapping, found);
            }
        }
        if (found.isEmpty() || vdso == null) {
            return;
        }
        CallTable calls = new CallTable();
        for (long start : found) {
            calls.must("remove scratch memory", SystemCall.MUNMAP, start, RemoteProcess.SCRATCH_BYTES);
        }
        try (RemoteProcess remote = process.openRemote(vdso)) {
            remote.run(process.leader().context(), calls);
        }
    }

    private static void findIn(FrozenProcess process, MappingInfo mapping, List<Long> found) {
        if ((mapping.end() - mapping.start()) % RemoteProcess.SCRATCH_BYTES != 0) {
            return;
        }
        for (long at = mapping.start(); at < mapping.end(); at += RemoteProcess.SCRATCH_BYTES) {
            long end = at + RemoteProcess.SCRATCH_BYTES;
            long start = at;
            boolean inUse = process.threads().stream()
                    .mapToLong(t -> t.context().registers().instructionPointer())
                    .anyMatch(ip -> ip >= start && ip < end);
            if (!inUse && process.memory().readLong(at) == RemoteProcess.SCRATCH_MAGIC) {
                found.add(start);
            }
        }
    }
}
