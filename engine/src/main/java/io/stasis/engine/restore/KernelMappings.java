package io.stasis.engine.restore;

import io.stasis.linux.Pid;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.MappingInfo;
import io.stasis.linux.proc.Mappings;
import io.stasis.linux.ptrace.CallTable;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The mappings the kernel makes in each new process: [vdso], [vvar], [vvar_vclock]. The stub's are moved aside once,
 * before it has descendants; each of them moves its own to where the image has them. Each must be moved whole, or the
 * kernel no longer knows its place.
 */
final class KernelMappings {
    private static final int MREMAP_MAYMOVE_FIXED = 3;
    private static final List<String> NAMES = List.of("[vvar]", "[vvar_vclock]", "[vdso]");

    private final Map<String, Long> addresses = new HashMap<>();

    /** Sizes of these mappings in a process, in bytes, by name. */
    static Map<String, Long> sizes(Pid pid) {
        Map<String, Long> sizes = new LinkedHashMap<>();
        for (MappingInfo mapping : Mappings.readMaps(pid)) {
            if (NAMES.contains(mapping.path())) {
                sizes.put(mapping.path(), mapping.end() - mapping.start());
            }
        }
        return sizes;
    }

    long address(String name) {
        return addresses.get(name);
    }

    /** Moves the stub's to {@code target} and unmaps all else but the work area. */
    void moveAside(RestoredProcess stub, long workArea, long workAreaBytes, long target) {
        CallTable calls = new CallTable();
        long at = target;
        for (MappingInfo mapping : Mappings.readMaps(stub.host())) {
            long length = mapping.end() - mapping.start();
            if (NAMES.contains(mapping.path())) {
                calls.must(
                        "move " + mapping.path(),
                        SystemCall.MREMAP,
                        mapping.start(),
                        length,
                        length,
                        MREMAP_MAYMOVE_FIXED,
                        at);
                addresses.put(mapping.path(), at);
                at += length;
            } else if (!mapping.path().equals("[vsyscall]")
                    && (mapping.start() < workArea || mapping.start() >= workArea + workAreaBytes)) {
                calls.must("unmap the stub's own " + mapping.path(), SystemCall.MUNMAP, mapping.start(), length);
            }
        }
        stub.run(calls);
    }
}
