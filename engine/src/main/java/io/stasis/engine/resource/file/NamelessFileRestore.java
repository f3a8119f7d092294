package io.stasis.engine.resource.file;

import io.stasis.engine.EngineException;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.PageFile;
import io.stasis.image.model.ComputationImage.NamelessFile;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.StatMode;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;

/**
 * Makes the files of an image that have no path, in three steps: empty in the stub, before anything opens or maps them;
 * filled from here; and at the end, when nobody has to open them any more, with their mode, owner, time and seals.
 *
 * <p>An unlinked file comes to be in the directory it was in, so that it lies on the same file system, and in the agent's
 * own when that is gone.
 */
public final class NamelessFileRestore {
    private static final int PRIVATE_MODE = 0600;
    private static final int PERMISSIONS = 07777;
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int CHUNK = 1 << 20;
    private static final long UTIME_OMIT = (1L << 30) - 2;
    private static final long NANOS = 1_000_000_000L;

    private final List<NamelessFile> files;
    private final int base;
    private final Path fallback;

    /**
     * @param base the stub's descriptor of the first file; the others follow
     * @param fallback directory for files whose own is gone
     */
    public NamelessFileRestore(List<NamelessFile> files, int base, Path fallback) {
        this.files = files;
        this.base = base;
        this.fallback = fallback;
    }

    /** Adds the calls, to be run in the stub, that make every file with its size and without content. */
    public void create(StubCalls stub) {
        for (int i = 0; i < files.size(); i++) {
            NamelessFile file = files.get(i);
            String path = file.file().path();
            if (file.memory()) {
                createMemory(path, base + i, stub);
            } else {
                createUnlinked(Path.of(path), base + i, stub);
            }
            stub.calls()
                    .must(
                            "give " + path + " its size",
                            SystemCall.FTRUNCATE,
                            base + i,
                            file.file().size());
        }
    }

    private static void createMemory(String path, int target, StubCalls stub) {
        String name = path.startsWith(NamelessFiles.MEMORY) ? path.substring(NamelessFiles.MEMORY.length()) : path;
        CallTable calls = stub.calls();
        int made = calls.must(
                "make memory file " + name,
                SystemCall.MEMFD_CREATE,
                calls.string(name),
                MFD_CLOEXEC | MFD_ALLOW_SEALING);
        stub.place(made, target);
    }

    private void createUnlinked(Path path, int target, StubCalls stub) {
        boolean exists = path.isAbsolute()
                && path.getParent() != null
                && FileStatus.of(path.getParent().toString()).isDirectory();
        Path directory = exists ? path.getParent() : fallback;
        boolean temporary = exists && path.getFileName().toString().startsWith("#");
        boolean free = exists && !FileStatus.ofLink(path.toString()).exists();
        String what = "make a file without a name in " + directory;
        CallTable calls = stub.calls();
        if (temporary) {
            // One that was made by O_TMPFILE may still be given a name by linkat(2), others never again.
            int made = calls.must(
                    what,
                    SystemCall.OPENAT,
                    Fcntl.AT_FDCWD,
                    calls.string(directory.toString()),
                    Fcntl.O_TMPFILE | Fcntl.O_RDWR | Fcntl.O_CLOEXEC,
                    PRIVATE_MODE);
            stub.place(made, target);
            return;
        }
        // Where the name belongs to another file by now, /proc/PID/fd will show one that differs.
        String name = (free ? path : directory.resolve(".stasis-" + System.nanoTime())).toString();
        long text = calls.string(name);
        int made = calls.must(
                what,
                SystemCall.OPENAT,
                Fcntl.AT_FDCWD,
                text,
                Fcntl.O_CREAT | Fcntl.O_EXCL | Fcntl.O_NOFOLLOW | Fcntl.O_RDWR | Fcntl.O_CLOEXEC,
                PRIVATE_MODE);
        calls.must("unlink " + name, SystemCall.UNLINK, text);
        stub.place(made, target);
    }

    /** Writes the content of every file through copies of the stub's descriptors. */
    public void fill(StubDescriptors stub, Path generation) {
        ByteBuffer buffer = files.isEmpty() ? null : Libc.buffer(CHUNK);
        for (int i = 0; i < files.size(); i++) {
            Path pageFile = PageFile.inside(generation, files.get(i).pageFile());
            try (PageFile pages = PageFile.open(pageFile);
                    Fd copy = stub.copy(base + i)) {
                for (PageFile.Run run : pages.runs()) {
                    fill(copy, run, pages, files.get(i), buffer);
                }
            }
        }
    }

    private static void fill(Fd copy, PageFile.Run run, PageFile pages, NamelessFile file, ByteBuffer buffer) {
        long end = Math.min(
                run.address() + run.pages() * (long) PageFile.PAGE, file.file().size());
        if (run.address() < 0 || run.address() >= end) {
            throw new EngineException(
                    EngineException.Kind.IMAGE,
                    "page file " + file.pageFile() + " holds more than the "
                            + file.file().size() + " bytes of " + file.file().path()
                            + "; restart from another generation");
        }
        long at = run.address();
        while (at < end) {
            buffer.clear().limit((int) Math.min(CHUNK, end - at));
            pages.read(run.fileOffset() + (at - run.address()), buffer);
            for (int done = 0; done < buffer.limit(); ) {
                done += (int) Libc.check(
                        Libc.call(
                                SystemCall.PWRITE64,
                                copy.value(),
                                Libc.address(buffer.rewind()) + done,
                                buffer.limit() - done,
                                at + done),
                        "write the content of deleted file " + file.file().path());
            }
            at += buffer.limit();
        }
    }

    /** Sets what would have stood in the way of opening and filling them. */
    public void finish(StubDescriptors stub) {
        for (int i = 0; i < files.size(); i++) {
            try (Fd copy = stub.copy(base + i)) {
                finish(files.get(i), copy);
            }
        }
    }

    private static void finish(NamelessFile file, Fd copy) {
        String path = file.file().path();
        FileStatus now = FileStatus.ofFd(copy.value());
        if (now.uid() != file.user() || now.gid() != file.group()) {
            Libc.check(
                    Libc.call(SystemCall.FCHOWN, copy.value(), file.user(), file.group()),
                    "fchown of deleted file " + path);
        }
        if ((file.file().mode() & StatMode.S_IFMT) == StatMode.S_IFREG) {
            Libc.check(
                    Libc.call(SystemCall.FCHMOD, copy.value(), file.file().mode() & PERMISSIONS),
                    "fchmod of deleted file " + path);
        }
        ByteBuffer times = Libc.buffer(32);
        times.putLong(8, UTIME_OMIT)
                .putLong(16, Math.floorDiv(file.file().modifiedNanos(), NANOS))
                .putLong(24, Math.floorMod(file.file().modifiedNanos(), NANOS));
        Libc.check(
                Libc.call(SystemCall.UTIMENSAT, copy.value(), 0, Libc.address(times), 0),
                "futimens of deleted file " + path);
        if (file.memory()) {
            Libc.check(
                    Libc.call(SystemCall.FCNTL, copy.value(), Fcntl.F_ADD_SEALS, file.seals()),
                    "F_ADD_SEALS of memory file " + path);
        }
    }
}
