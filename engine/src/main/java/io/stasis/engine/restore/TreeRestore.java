package io.stasis.engine.restore;

import static io.stasis.linux.ptrace.PtraceRequest.*;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.RestoreRequest;
import io.stasis.engine.RestoreSession;
import io.stasis.engine.kinds.Kinds;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.DescriptorRestore;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.engine.resource.file.NamelessFileRestore;
import io.stasis.engine.resource.ipc.SharedSegments;
import io.stasis.engine.resource.ipc.SystemVObjects;
import io.stasis.engine.resource.outside.Outside;
import io.stasis.image.PageFile;
import io.stasis.image.RecordFile;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ComputationImage.SavedFile;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.ProcessImage;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.elf.StubProgram;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.Stop;
import io.stasis.linux.ptrace.Tracee;
import io.stasis.linux.ptrace.WorkArea;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/** One attempt to restart one tree, see {@link RestoreSession}. */
public final class TreeRestore implements RestoreSession {
    private static final int MAP_SHARED_ANONYMOUS_FIXED_NOREPLACE = 0x21 | 0x100000;
    private static final int PROT_READ_WRITE = 3;
    private static final int AT_FDCWD = -100;
    private static final int O_RDONLY_CLOEXEC = 0x80000;
    private static final int RLIMIT_NOFILE = 7;
    private static final long STUB_PATIENCE_NANOS = 5_000_000_000L;
    private static final int FIRST_HIGH_DESCRIPTOR = 64;

    private final RestoreRequest request;
    private final ComputationImage computation;
    private final Map<Integer, ProcessImage> images = new LinkedHashMap<>();
    private final KernelMappings kernelMappings = new KernelMappings();
    private final SharedSegments segments;
    private final SystemVObjects systemV;
    private final int scratchFd;
    private final boolean inNamespace;
    private AddressPlan plan;
    private WorkArea workArea;
    private DescriptorRestore descriptors;
    private Outside outside;
    private NamelessFileRestore namelessFiles;
    private Path stubPath;
    private RestoredProcess stub;
    private Tracee seizedStub;
    private TreeBuilder tree;
    private PidNamespace namespace;
    private boolean grouped;
    private boolean released;

    public TreeRestore(RestoreRequest request) {
        this.request = request;
        Path host = request.generation().resolve(request.imageHost());
        this.computation = RecordFile.read(host.resolve("tree.record"), ComputationImage.class);
        this.segments = new SharedSegments(computation.segments());
        this.systemV = new SystemVObjects(computation.systemV());
        int highest = FIRST_HIGH_DESCRIPTOR;
        for (int pid : computation.processes()) {
            ProcessImage image = RecordFile.read(host.resolve(pid + ".process"), ProcessImage.class);
            images.put(pid, image);
            for (DescriptorEntry entry : image.descriptors()) {
                highest = Math.max(highest, entry.fd());
            }
        }
        this.scratchFd = highest + 1;
        this.inNamespace = switch (request.options().pids()) {
            case KEEP -> false;
            case NAMESPACE -> true;
            case DEFAULT -> !PidNamespace.mayChoosePids();
            case AUTO ->
                !PidNamespace.mayChoosePids() || new RestoreCheck(computation, images.values(), false).isAPidTaken();
        };
    }

    @Override
    public List<Problem> verify() {
        return attempt("check the image against this host", () -> {
            List<Problem> problems =
                    new ArrayList<>(new RestoreCheck(computation, images.values(), inNamespace).problems());
            problems.addAll(
                    descriptors(Outside.unknown(request.options().detached())).verify());
            problems.addAll(SharedSegments.verify(computation));
            problems.addAll(SystemVObjects.verify(computation));
            return problems;
        });
    }

    private DescriptorRestore descriptors(Outside outside) {
        List<DescriptorKind<?>> kinds = Kinds.forRestore(computation, outside).all();
        return new DescriptorRestore(computation, kinds, outside.standard(), scratchFd + 2);
    }

    @Override
    public Path stub() {
        return attempt("write the stub", () -> {
            plan = AddressPlan.of(computation, images.values());
            workArea = new WorkArea(plan.workArea(), AddressPlan.WORK_AREA_BYTES);
            stubPath = request.workDirectory().resolve("stub-" + computation.root() + "-" + System.nanoTime());
            StubProgram.write(stubPath, plan.stubPage());
            return stubPath;
        });
    }

    @Override
    public boolean needsPty() {
        int root = computation.root();
        boolean ledItsTerminal = images.get(root).identity().session() == root
                && computation.terminals().stream().anyMatch(terminal -> terminal.session() == root);
        RestartOptions options = request.options();
        return options.pty() || (ledItsTerminal && options.terminal() && !options.detached());
    }

    @Override
    public int spawn() {
        return attempt("start the stub", () -> Libc.spawn(stubPath.toString()));
    }

    @Override
    public void adopt(int stubPid) {
        attempt("take over the stub", () -> {
            seizedStub = Tracee.seize(new Tid(stubPid), ProcessBuilder.TRACE_OPTIONS);
            seizedStub.interrupt();
            var stop = seizedStub.awaitFrozen(System.nanoTime() + STUB_PATIENCE_NANOS);
            if (stop.isEmpty() || stop.get() instanceof Stop.Gone) {
                throw new EngineException(
                        EngineException.Kind.FAILED, "the stub " + stubPath + " ended as soon as it was started");
            }
            stub = new RestoredProcess(stubPid, seizedStub, workArea, TreeBuilder.OUTSIDE, false);
            Cloning cloning = new Cloning(workArea, inNamespace);
            prepareStub(cloning);
            boolean detached = request.options().detached() || needsPty();
            boolean ownSessions = inNamespace
                    && !needsPty()
                    && (detached || ProcStat.read(stub.host()).ttyNr() == 0);
            Optional<String> newTerminal = needsPty() ? outside.terminal() : Optional.empty();
            var terminals = new SessionTerminals(computation, newTerminal);
            tree = new TreeBuilder(
                    stub, workArea, cloning, terminals, computation, images.values(), detached, ownSessions);
            return null;
        });
    }

    /** Makes of the stub what its descendants are to inherit: kernel mappings, shared memory, open descriptions. */
    private void prepareStub(Cloning cloning) {
        workArea.map(stub.memory(), stub.main(), plan.stubPage() + StubProgram.ROOM);
        kernelMappings.moveAside(stub, plan.workArea(), AddressPlan.WORK_AREA_BYTES, plan.kernelMappings());
        if (inNamespace) {
            namespace = PidNamespace.make(stub, cloning);
        }
        writeSavedFiles();
        outside = Outside.of(stub.host(), request.options().detached());
        descriptors = descriptors(outside);
        List<Problem> problems = descriptors.verify();
        if (!problems.isEmpty()) {
            throw new EngineException(
                    EngineException.Kind.IMAGE,
                    "cannot restart: "
                            + String.join(
                                    "; and ",
                                    problems.stream().map(Problem::sentence).toList()));
        }
        Program program = new Program(workArea.room());
        // The hard limit stays: once lowered it could not be raised again without CAP_SYS_RESOURCE.
        long hard = ProcFiles.limits(stub.host())[RLIMIT_NOFILE][1];
        if (hard >= 0 && hard < descriptors.end()) {
            throw new EngineException(
                    EngineException.Kind.FAILED,
                    "the descriptor limit of this session is " + hard + " and the restart needs " + descriptors.end()
                            + "; raise it with `ulimit -Hn`");
        }
        CallTable limit = program.calls();
        limit.must("raise the descriptor limit", SystemCall.PRLIMIT64, 0, RLIMIT_NOFILE, limit.longs(hard, hard), 0);
        limit.must("close what the stub inherited", SystemCall.CLOSE_RANGE, 3, ~0L & 0xffffffffL, 0);
        stub.run(program);
        makeSharedMemory();
        Program[] opens = {new Program(workArea.room())};
        descriptors.prepare(() -> opens[0].calls());
        namelessFiles = new NamelessFileRestore(
                computation.namelessFiles(), descriptors.namelessBase(), request.workDirectory());
        namelessFiles.create(descriptors.calls(() -> opens[0].calls()));
        descriptors.open(stub.pid(), () -> opens[0].calls(), () -> {
            stub.run(opens[0]);
            opens[0] = new Program(workArea.room());
        });
        stub.run(opens[0]);
        try (StubDescriptors copies = new StubDescriptors(stub.pid())) {
            namelessFiles.fill(copies, request.generation());
        }
        if (namespace != null) {
            namespace.mountProc();
        }
    }

    /** Small files that were mapped shared and have vanished, such as a JVM's performance data. */
    private void writeSavedFiles() {
        for (SavedFile saved : computation.savedFiles()) {
            Path path = Path.of(saved.file().path());
            if (FileStatus.of(saved.file().path()).exists()) {
                continue;
            }
            try {
                Files.createDirectories(path.getParent());
                Files.createFile(
                        path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
                Files.write(path, saved.content());
            } catch (IOException e) {
                throw new EngineException(
                        EngineException.Kind.FAILED, "cannot put back the mapped file " + path + ": " + e, e);
            }
        }
    }

    private void makeSharedMemory() {
        for (int i = 0; i < computation.sharedObjects().size(); i++) {
            var object = computation.sharedObjects().get(i);
            long address = plan.sharedObjects().get(i);
            Path file = PageFile.inside(request.generation(), object.pageFile());
            List<PageFile.Run> runs;
            try (PageFile pages = PageFile.open(file)) {
                runs = pages.runs();
            }
            Program program = new Program(workArea.room());
            CallTable calls = program.calls();
            if (!segments.attach(i, address, stub::run)) {
                calls.must(
                        "make shared memory",
                        SystemCall.MMAP,
                        address,
                        AddressPlan.pages(object.size()),
                        PROT_READ_WRITE,
                        MAP_SHARED_ANONYMOUS_FIXED_NOREPLACE,
                        -1,
                        0);
            }
            int opened = calls.must(
                    "open " + file,
                    SystemCall.OPENAT,
                    AT_FDCWD,
                    calls.string(file.toAbsolutePath().toString()),
                    O_RDONLY_CLOEXEC,
                    0);
            int moved = calls.must("open " + file, SystemCall.DUP3, 0, scratchFd, O_RDONLY_CLOEXEC);
            calls.forward(opened, moved, 0);
            for (PageFile.Run run : runs) {
                program.calls()
                        .must(
                                "read shared pages from " + file,
                                SystemCall.PREAD64,
                                scratchFd,
                                address + run.address(),
                                run.pages() * 4096L,
                                run.fileOffset());
            }
            program.calls().must("close page files", SystemCall.CLOSE_RANGE, 3, scratchFd, 0);
            stub.run(program);
            segments.filled(i, address, stub::run);
        }
        segments.finish();
    }

    @Override
    public List<ProcessKey> processes() {
        return images.values().stream()
                .map(image -> new ProcessKey(
                        request.imageHost(),
                        image.identity().pid(),
                        image.identity().startTime()))
                .toList();
    }

    @Override
    public Outcome.Created create(ProcessKey process) {
        return attempt("make process " + process.pid(), () -> {
            long started = System.nanoTime();
            RestoredProcess made = tree.create(process.pid());
            return new Outcome.Created(key(process), made.image().identity().parent(), started, System.nanoTime());
        });
    }

    @Override
    public Outcome.Rebuilt rebuild(ProcessKey process) {
        return attempt("rebuild process " + process.pid(), () -> {
            long started = System.nanoTime();
            if (!grouped) {
                tree.assignGroups();
                tree.endZombies();
                grouped = true;
            }
            RestoredProcess made = tree.process(process.pid());
            long bytes = new ProcessBuilder(made, workArea)
                    .build(
                            plan,
                            kernelMappings,
                            request.generation(),
                            descriptors,
                            scratchFd,
                            tree.isDisturbed(process.pid()));
            ProcessImage image = made.image();
            return new Outcome.Rebuilt(
                    key(process),
                    image.threads().size(),
                    image.memory().mappings().size(),
                    image.descriptors().size(),
                    bytes,
                    started,
                    System.nanoTime());
        });
    }

    @Override
    public Outcome.Refilled refill(ProcessKey process) {
        return attempt("refill the pipes of process " + process.pid(), () -> {
            long started = System.nanoTime();
            List<Outcome.Connection> connections = List.of();
            if (process.pid() == images.keySet().iterator().next()) {
                connections = descriptors.complete(stub.pid(), HostIds.of(tree.all())::host);
                try (StubDescriptors copies = new StubDescriptors(stub.pid())) {
                    namelessFiles.finish(copies);
                }
                systemV.restore(this::runIn);
            }
            return new Outcome.Refilled(key(process), connections, started, System.nanoTime());
        });
    }

    /** Makes calls in a process of the tree, or in its root when it has none of that pid. */
    private void runIn(int pid, CallTable calls) {
        tree.process(images.containsKey(pid) ? pid : computation.root()).run(calls);
    }

    @Override
    public List<Outcome.Released> release() {
        return attempt("let the processes go", () -> {
            List<ProcessBuilder> builders = new ArrayList<>();
            for (RestoredProcess process : tree.all()) {
                builders.add(new ProcessBuilder(process, workArea));
            }
            boolean foreground =
                    !request.options().detached() && (needsPty() || TerminalHandover.isForeground(stub.host()));
            stub.kill();
            stub = null;
            seizedStub = null;
            if (foreground && hadForeground()) {
                handOverTerminal();
            }
            builders.forEach(builder -> builder.finish(plan));
            if (namespace != null) {
                namespace.release(workArea, tree.process(computation.root()));
            }
            // From here on the death of the agent lets everything go instead of killing it: all of it or nothing.
            tree.all().forEach(process -> process.threads().forEach(thread -> thread.setOptions(0)));
            released = true;
            segments.keep();
            systemV.keep();
            List<Outcome.Released> outcomes = new ArrayList<>();
            // Children first: a parent must not see a child that is about to stop running.
            for (ProcessBuilder builder : builders.reversed()) {
                long started = System.nanoTime();
                builder.release();
                outcomes.add(new Outcome.Released(key(builder.pid()), started, System.nanoTime()));
            }
            return outcomes;
        });
    }

    /** In the stub's stead by the root process, which is in the command's session. */
    private void handOverTerminal() {
        RestoredProcess root = tree.process(computation.root());
        if (ProcStat.read(root.host()).ttyNr() == 0) {
            return; // it leads a session of its own, which has no terminal
        }
        TerminalHandover.take(root, computation.terminals().getFirst(), ownForegroundGroup());
    }

    /** The key of the process as it is now: with the start time of its new life. */
    private ProcessKey key(ProcessKey old) {
        return key(old.pid());
    }

    private ProcessKey key(int pid) {
        Pid host = tree.process(pid).host();
        long startTime = ProcStat.find(host).map(ProcStat::startTime).orElse(0L);
        return new ProcessKey(request.host(), pid, startTime);
    }

    @Override
    public ProcessKey root() {
        Pid pid = tree.process(computation.root()).host();
        return new ProcessKey(
                request.host(), pid.value(), key(computation.root()).startTime());
    }

    @Override
    public List<Integer> pids() {
        return images.keySet().stream()
                .map(pid -> tree.process(pid).host().value())
                .toList();
    }

    @Override
    public int foregroundGroup() {
        int group = ownForegroundGroup();
        return group == 0 || !inNamespace ? group : hostGroup(group);
    }

    private int hostGroup(int group) {
        return tree.all().stream()
                .filter(process -> process.image().identity().group() == group)
                .findFirst()
                .map(process -> ProcStat.read(process.host()).pgrp())
                .orElse(0);
    }

    /** As the tree itself sees it. */
    private int ownForegroundGroup() {
        var root = images.get(computation.root()).identity();
        boolean outside = root.session() != root.pid() && root.group() != root.pid();
        int group = groupInForeground();
        // The group of the command that started the program is now the restart command's, which has the foreground.
        return outside && group == root.group() ? 0 : group;
    }

    private boolean hadForeground() {
        return groupInForeground() != 0;
    }

    private int groupInForeground() {
        for (var terminal : computation.terminals()) {
            if (images.values().stream().anyMatch(image -> image.identity().group() == terminal.foregroundGroup())) {
                return terminal.foregroundGroup();
            }
        }
        return 0;
    }

    @Override
    public byte[] terminalSettings() {
        return computation.terminals().isEmpty()
                ? null
                : computation.terminals().getFirst().termios();
    }

    /** Runs a step and turns the kernel's words into a sentence that says what was being done. */
    private static <T> T attempt(String what, Supplier<T> step) {
        try {
            return step.get();
        } catch (EngineException e) {
            throw e;
        } catch (KernelException e) {
            throw new EngineException(
                    EngineException.Kind.FAILED,
                    "could not " + what + ": " + e.getMessage() + "; nothing was left behind, the image is unchanged",
                    e);
        }
    }

    @Override
    public void close() {
        try {
            if (!released && tree != null) {
                tree.killAll();
            }
            if (!released && namespace != null) {
                namespace.end();
            }
            if (stub != null) {
                stub.kill();
            } else if (seizedStub != null) {
                Libc.call(SystemCall.KILL, seizedStub.tid().value(), 9);
                seizedStub.reap();
            }
        } finally {
            segments.close();
            systemV.close();
            if (stubPath != null) {
                try {
                    Files.deleteIfExists(stubPath);
                } catch (IOException e) {
                    org.slf4j.LoggerFactory.getLogger(TreeRestore.class).warn("cannot remove {}", stubPath, e);
                }
            }
        }
    }
}
