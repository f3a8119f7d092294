package io.stasis.engine.resource.file;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.OpenNamelessFile;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.ProcLinks;
import java.util.Optional;

/**
 * Open descriptions of regular files that no path leads to, see {@link NamelessFiles}. Unlike those with a path their
 * content is part of a checkpoint, as nothing else would keep it.
 */
public final class NamelessDescriptors implements DescriptorKind<OpenNamelessFile> {
    /** {@code <linux/magic.h>}: huge pages, which cannot be written by write(2). */
    private static final long HUGETLBFS_MAGIC = 0x958458f6L;

    private final NamelessFiles files;

    /** @param files those of the tree; empty for a restore */
    public NamelessDescriptors(NamelessFiles files) {
        this.files = files;
    }

    @Override
    public Class<OpenNamelessFile> type() {
        return OpenNamelessFile.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().startsWith("/")
                && descriptor.status().isRegular()
                && descriptor.status().nlink() == 0;
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        if (descriptor.info().extra().stream().anyMatch(line -> line.startsWith("lock:") && line.contains("LEASE"))) {
            return Optional.of(DescriptorKind.problem(
                    descriptor,
                    "lease on " + descriptor.link(),
                    "to read a file that was deleted would break its lease",
                    "give the lease up, or keep the file"));
        }
        if (FileStatus.fileSystemType("/proc/" + descriptor.pid() + "/fd/" + descriptor.fd()) == HUGETLBFS_MAGIC) {
            return Optional.of(DescriptorKind.problem(
                    descriptor, descriptor.link(), "huge pages of hugetlbfs are not supported", "use plain pages"));
        }
        if (!InodeContent.canBeRead(descriptor.pid(), descriptor.fd())) {
            return Optional.of(DescriptorKind.problem(
                    descriptor,
                    "file " + descriptor.link(),
                    "it was deleted, and its permissions do not let this user read its content",
                    "run as root"));
        }
        return Optional.empty();
    }

    @Override
    public OpenNamelessFile capture(Descriptor descriptor) {
        String path = ProcLinks.fd(new Pid(descriptor.pid()), descriptor.fd()).path();
        return new OpenNamelessFile(
                descriptor.statusFlags(),
                files.of(descriptor, path).index(),
                descriptor.info().pos());
    }

    @Override
    public void open(OpenNamelessFile description, int target, StubCalls stub) {
        // F_GETFL still shows O_TMPFILE, which here would ask for one more file.
        int flags = description.statusFlags() & ~(Fcntl.O_TMPFILE & ~Fcntl.O_DIRECTORY) & ~Fcntl.O_DIRECTORY;
        stub.open(stub.namelessFile(description.file()), flags & ~Fcntl.O_NOFOLLOW, target);
        if (description.offset() != 0) {
            stub.calls()
                    .must("move to the offset in a deleted file", SystemCall.LSEEK, target, description.offset(), 0);
        }
    }
}
