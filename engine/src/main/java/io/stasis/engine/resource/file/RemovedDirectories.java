package io.stasis.engine.resource.file;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.OpenDescription.OpenRemovedDirectory;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.ProcLinks;
import io.stasis.linux.ptrace.CallTable;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * Directories that were removed while they were open: empty, and closed to new entries, see rmdir(2). A fresh one, made
 * and removed again in the same place, is as good.
 */
public final class RemovedDirectories implements DescriptorKind<OpenRemovedDirectory> {
    private static final int PERMISSIONS = 07777;

    @Override
    public Class<OpenRemovedDirectory> type() {
        return OpenRemovedDirectory.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().startsWith("/")
                && descriptor.status().isDirectory()
                && descriptor.status().nlink() == 0
                && !ProcessFiles.isOfProcess(descriptor.link());
    }

    @Override
    public OpenRemovedDirectory capture(Descriptor descriptor) {
        FileReference file = descriptor.reference();
        String path = ProcLinks.fd(new Pid(descriptor.pid()), descriptor.fd()).path();
        return new OpenRemovedDirectory(
                descriptor.statusFlags(),
                new FileReference(path, file.device(), file.inode(), file.mode(), file.size(), file.modifiedNanos()));
    }

    @Override
    public List<Problem> verify(OpenRemovedDirectory description) {
        return problem(0, description.directory()).stream().toList();
    }

    /** What stands in the way of making a removed directory once more. */
    public static Optional<Problem> problem(int pid, FileReference directory) {
        Path parent = Path.of(directory.path()).getParent();
        return parent != null && FileStatus.of(parent.toString()).isDirectory()
                ? Optional.empty()
                : Optional.of(new Problem(
                        pid,
                        -1,
                        "removed directory " + directory.path(),
                        "the directory that it was in does not exist",
                        "make that again"));
    }

    @Override
    public void open(OpenRemovedDirectory description, int target, StubCalls stub) {
        String name = make(description.directory(), stub.calls());
        stub.open(name, description.statusFlags(), target);
        remove(name, stub.calls());
    }

    /** Adds the calls that make the directory again. Returns its name, which differs when the old one is taken. */
    public static String make(FileReference directory, CallTable calls) {
        String path = directory.path();
        String name = FileStatus.ofLink(path).exists() ? path + ".stasis-" + System.nanoTime() : path;
        calls.must("make directory " + name, SystemCall.MKDIR, calls.string(name), 0700);
        calls.must("chmod directory " + name, SystemCall.CHMOD, calls.string(name), directory.mode() & PERMISSIONS);
        return name;
    }

    /** Adds the call that removes what {@link #make} made, when it is open. */
    public static void remove(String name, CallTable calls) {
        calls.must("remove directory " + name, SystemCall.RMDIR, calls.string(name));
    }
}
