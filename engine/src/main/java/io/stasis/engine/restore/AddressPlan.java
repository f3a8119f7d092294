package io.stasis.engine.restore;

import io.stasis.engine.EngineException;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.image.model.ProcessImage;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * Addresses that are free in every process of the image, for what a restore needs in all of them: the stub's page, the
 * work area, a place for the kernel's own mappings meanwhile, and shared memory before it is put into place.
 *
 * @param start first byte of the whole range
 * @param end byte behind it
 * @param stubPage page of the stub's executable
 * @param workArea see {@link io.stasis.linux.ptrace.WorkArea}
 * @param kernelMappings where the vDSO and its data wait
 * @param sharedObjects address of each shared object, by index
 */
record AddressPlan(long start, long end, long stubPage, long workArea, long kernelMappings, List<Long> sharedObjects) {
    static final int WORK_AREA_BYTES = 512 * 1024;
    private static final int KERNEL_MAPPINGS_BYTES = 256 * 1024;
    private static final int GAP = 64 * 1024;
    private static final long PAGE = 4096;

    // The kernel puts stacks, the vDSO and mmap areas near the top: below this a fresh stub has nothing.
    private static final long LOWEST = 0x10_0000_0000L;
    private static final long HIGHEST = 0x7000_0000_0000L;

    static AddressPlan of(ComputationImage computation, Collection<ProcessImage> processes) {
        long size = GAP + WORK_AREA_BYTES + GAP + KERNEL_MAPPINGS_BYTES + GAP;
        for (var object : computation.sharedObjects()) {
            size += pages(object.size()) + GAP;
        }
        long start = findGap(processes, size);
        long workArea = start + GAP;
        long kernelMappings = workArea + WORK_AREA_BYTES + GAP;
        long at = kernelMappings + KERNEL_MAPPINGS_BYTES + GAP;
        List<Long> shared = new ArrayList<>();
        for (var object : computation.sharedObjects()) {
            shared.add(at);
            at += pages(object.size()) + GAP;
        }
        return new AddressPlan(start, start + size, start, workArea, kernelMappings, List.copyOf(shared));
    }

    static long pages(long bytes) {
        return (bytes + PAGE - 1) & -PAGE;
    }

    private static long findGap(Collection<ProcessImage> processes, long size) {
        List<long[]> used = new ArrayList<>();
        for (ProcessImage process : processes) {
            for (Mapping mapping : process.memory().mappings()) {
                used.add(new long[] {mapping.start(), mapping.end()});
            }
        }
        used.sort((a, b) -> Long.compareUnsigned(a[0], b[0]));
        long candidate = LOWEST;
        for (long[] range : used) {
            if (range[0] - candidate >= size + GAP) {
                break;
            }
            candidate = Math.max(candidate, pages(range[1]) + GAP);
        }
        if (candidate + size > HIGHEST) {
            throw new EngineException(
                    EngineException.Kind.FAILED,
                    "no " + size + " bytes of addresses are free in all processes of the image");
        }
        return candidate;
    }
}
