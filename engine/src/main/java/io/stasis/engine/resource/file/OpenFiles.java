package io.stasis.engine.resource.file;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.OpenDescription.OpenFile;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.StatMode;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.ProcLinks;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;

/**
 * Regular files, directories and harmless devices, by path: opened again with the same flags and moved to the same
 * offset. Their content is not part of a checkpoint.
 */
public final class OpenFiles implements DescriptorKind<OpenFile> {
    private static final Set<String> DEVICES =
            Set.of("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom");

    private final Set<Integer> treePids;

    /** @param treePids processes of the tree, which may grow; empty for a restore */
    public OpenFiles(Set<Integer> treePids) {
        this.treePids = treePids;
    }

    @Override
    public Class<OpenFile> type() {
        return OpenFile.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        FileStatus status = descriptor.status();
        return descriptor.link().startsWith("/")
                && (status.isRegular() || status.isDirectory() || isHarmlessDevice(descriptor) || isPath(descriptor));
    }

    private static boolean isHarmlessDevice(Descriptor descriptor) {
        return descriptor.status().isCharacterDevice() && DEVICES.contains(descriptor.link());
    }

    private static boolean isPath(Descriptor descriptor) {
        return descriptor.isPathOnly() && !descriptor.status().isSymbolicLink();
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        if (ProcessFiles.isOfProcess(descriptor.link())) {
            return ProcessFiles.isOfTree(treePids, descriptor.link())
                    ? Optional.empty()
                    : Optional.of(DescriptorKind.problem(
                            descriptor,
                            "file " + descriptor.link(),
                            "it belongs to a process outside the tree, or to a thread",
                            "close it first"));
        }
        ProcLinks.Target target = ProcLinks.fd(new Pid(descriptor.pid()), descriptor.fd());
        if (!target.deleted() && !FileStatus.of(target.path()).exists()) {
            return Optional.of(DescriptorKind.problem(
                    descriptor,
                    "file " + target.path(),
                    "its path leads nowhere, as that of a POSIX message queue or of a mount that was hidden",
                    "close it first"));
        }
        if (!target.deleted()
                || NamelessFiles.otherName(target.path(), descriptor.status()).isPresent()) {
            return Optional.empty();
        }
        return Optional.of(DescriptorKind.problem(
                descriptor,
                "file " + target.path(),
                descriptor.status().isRegular()
                        ? "its name was removed and it has others, which are not in the same directory"
                        : "it was deleted, so that it could not be opened again",
                "keep the file, or close the descriptor"));
    }

    @Override
    public OpenFile capture(Descriptor descriptor) {
        ProcLinks.Target target = ProcLinks.fd(new Pid(descriptor.pid()), descriptor.fd());
        FileReference file = descriptor.reference();
        if (target.deleted()) {
            String name =
                    NamelessFiles.otherName(target.path(), descriptor.status()).orElse(target.path());
            file = new FileReference(name, file.device(), file.inode(), file.mode(), file.size(), file.modifiedNanos());
        }
        return new OpenFile(descriptor.statusFlags(), file, descriptor.info().pos());
    }

    @Override
    public List<Problem> verify(OpenFile description) {
        String path = description.file().path();
        if (ProcessFiles.isOfProcess(path)) {
            return List.of();
        }
        FileStatus now = FileStatus.of(path);
        if (!now.exists()) {
            return List.of(new Problem(0, -1, "open file " + path, "it does not exist", "put it back"));
        }
        int type = description.file().mode() & StatMode.S_IFMT;
        if ((now.mode() & StatMode.S_IFMT) != type) {
            return List.of(new Problem(
                    0, -1, "open file " + path, "it is now a file of another type", "put the old one back"));
        }
        return List.of();
    }

    /** A file of /proc/PID exists when the process does. */
    @Override
    public boolean isPerProcess(OpenFile description) {
        return ProcessFiles.isOfProcess(description.file().path());
    }

    @Override
    public void open(OpenFile description, int target, StubCalls stub) {
        OptionalInt told = ProcessFiles.descriptor(description.file().path());
        String path = description.file().path();
        lend(told, stub);
        stub.open(path, description.statusFlags(), target);
        if (description.offset() != 0) {
            lend(told, stub);
            stub.calls().must("move to the offset in " + path, SystemCall.LSEEK, target, description.offset(), 0);
            stub.closeTemporaries();
        }
    }

    /**
     * A file of /proc/PID/fdinfo can be opened and read while its descriptor is open, which has the process's own file only
     * later. It is closed with the temporary ones.
     */
    private static void lend(OptionalInt told, StubCalls stub) {
        if (told.isPresent() && told.getAsInt() >= StubCalls.FIRST && told.getAsInt() < stub.base()) {
            stub.calls()
                    .must("lend descriptor " + told.getAsInt(), SystemCall.DUP3, 0, told.getAsInt(), Fcntl.O_CLOEXEC);
        }
    }
}
