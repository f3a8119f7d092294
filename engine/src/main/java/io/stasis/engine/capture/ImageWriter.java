package io.stasis.engine.capture;

import io.stasis.engine.CheckpointRequest;
import io.stasis.engine.Outcome;
import io.stasis.engine.Outcome.ImageFile;
import io.stasis.engine.Outcome.ProcessSummary;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.capture.AddressSpaceReader.SharedObjectInfo;
import io.stasis.engine.namespace.InnerIds;
import io.stasis.engine.resource.file.NamelessFiles;
import io.stasis.image.PageFile;
import io.stasis.image.RecordFile;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ComputationImage.NamelessFile;
import io.stasis.image.model.ComputationImage.SharedObject;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.MemoryImage;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.image.model.ProcessImage;
import io.stasis.linux.Fd;
import io.stasis.linux.memory.PageScan;
import io.stasis.linux.proc.ProcFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Writes this host's files of one generation. */
final class ImageWriter {
    private static final String TREE = "tree";

    private record Captured(List<Mapping> mappings, List<DescriptorEntry> descriptors, ProcessReader.State state) {}

    private final CheckpointRequest request;
    private final AddressSpaceReader spaces;
    private final InnerIds ids;
    private final PageWriter pages = new PageWriter();
    private final Map<ProcessKey, Captured> captured = new HashMap<>();
    private final List<ImageFile> files = new ArrayList<>();
    private final List<ProcessSummary> summaries = new ArrayList<>();

    ImageWriter(CheckpointRequest request, AddressSpaceReader spaces, InnerIds ids) {
        this.request = request;
        this.ids = ids;
        this.spaces = spaces;
    }

    void add(FrozenProcess process, List<Mapping> mappings, List<DescriptorEntry> entries, ProcessReader.State state) {
        captured.put(process.key(), new Captured(mappings, entries, state));
    }

    Outcome.Written write(FrozenProcess process) {
        long started = System.nanoTime();
        Captured what = captured.get(process.key());
        ProcessReader.State state = what.state;
        int pid = ids.of(process.key().pid());
        String pageName = pid + ".pages";
        PageWriter.Count count;
        long pageBytes;
        try (PageFile.Writer writer = PageFile.create(path(pageName));
                PageScan scan = PageScan.open(process.pid())) {
            count = pages.writePrivate(what.mappings, process.memory(), scan, writer);
            pageBytes = addFile(pageName, writer.finish());
        }
        var memory = new MemoryImage(
                what.mappings,
                state.layout(),
                state.auxiliaryVector(),
                state.executable(),
                request.prefix() + "/" + pageName);
        var record = new ProcessImage(
                ids.of(state.identity()),
                memory,
                state.threads(),
                what.descriptors,
                state.filesystem(),
                state.signals(),
                state.timers(),
                ids.of(state.posixTimers()),
                state.limits(),
                state.attributes());
        String recordName = pid + ".process";
        long recordBytes = addFile(recordName, RecordFile.write(path(recordName), record));
        summaries.add(summary(process, what, pageBytes));
        return new Outcome.Written(
                process.key(), count.pages(), count.zeroPages(), pageBytes + recordBytes, started, System.nanoTime());
    }

    private ProcessSummary summary(FrozenProcess process, Captured what, long pageBytes) {
        long memoryBytes = what.mappings.stream().mapToLong(Mapping::length).sum();
        var identity = ids.of(what.state.identity());
        return new ProcessSummary(
                identity.pid(),
                identity.parent(),
                identity.name(),
                ProcFiles.cmdline(process.pid()),
                what.state.threads().size(),
                memoryBytes,
                pageBytes,
                process.status().uids()[0]);
    }

    /** One page file for each object of shared anonymous memory. */
    List<SharedObject> writeSharedObjects(Map<ProcessKey, FrozenProcess> frozen) {
        List<SharedObject> result = new ArrayList<>();
        for (SharedObjectInfo object : spaces.sharedObjects()) {
            String name = "shared-" + object.index + ".pages";
            Optional<Fd> opened = object.content.open();
            try (PageFile.Writer writer = PageFile.create(path(name))) {
                long size = contents(frozen).write(object.content, opened, writer);
                object.size = Math.max(object.size, size);
                addFile(name, writer.finish());
            } finally {
                opened.ifPresent(Fd::close);
            }
            result.add(new SharedObject(object.size, request.prefix() + "/" + name));
        }
        return result;
    }

    /** One page file for each file that no path leads to. */
    List<NamelessFile> writeNamelessFiles(NamelessFiles files, Map<ProcessKey, FrozenProcess> frozen) {
        List<NamelessFile> result = new ArrayList<>();
        for (NamelessFiles.Found found : files.found()) {
            String name = "file-" + found.index() + ".pages";
            Optional<Fd> opened = found.content().open();
            try (PageFile.Writer writer = PageFile.create(path(name))) {
                long size = contents(frozen).write(found.content(), opened, writer);
                addFile(name, writer.finish());
                result.add(found.image(opened, size, request.prefix() + "/" + name));
            } finally {
                opened.ifPresent(Fd::close);
            }
        }
        return result;
    }

    private ContentWriter contents(Map<ProcessKey, FrozenProcess> frozen) {
        return new ContentWriter(
                pages,
                pid -> frozen.values().stream()
                        .filter(process -> process.key().pid() == pid)
                        .findFirst()
                        .orElseThrow()
                        .memory());
    }

    void writeTree(ComputationImage computation) {
        addFile(TREE + ".record", RecordFile.write(path(TREE + ".record"), ids.of(computation)));
    }

    private long addFile(String name, io.stasis.image.FileSummary summary) {
        files.add(new ImageFile(request.prefix() + "/" + name, summary.size(), summary.crc32c()));
        return summary.size();
    }

    private Path path(String name) {
        return request.directory().resolve(name);
    }

    List<ImageFile> files() {
        return List.copyOf(files);
    }

    List<ProcessSummary> summaries() {
        return List.copyOf(summaries);
    }
}
