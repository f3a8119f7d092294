package io.stasis.engine.restore;

import io.stasis.image.model.ProcessImage;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.Tracee;
import io.stasis.linux.ptrace.WorkArea;
import java.util.ArrayList;
import java.util.List;

/**
 * A process while it is being built: the stub, a helper that lends its id, or one of the image. Its first thread runs
 * the calls from the work area; the other threads come later.
 */
final class RestoredProcess implements AutoCloseable {
    private static final int SIGKILL = 9;

    private final int pid;
    private final Pid host;
    private final Tracee main;
    private final ProcessMemory memory;
    private final WorkArea workArea;
    private final List<Tracee> threads = new ArrayList<>();
    private final boolean inNamespace;
    /** Session the process is in now; {@link TreeBuilder#OUTSIDE} for the restart command's. */
    private int session;
    /** What it becomes; null for the stub and for helpers. */
    private ProcessImage image;

    /** @param pid its id in its own pid namespace; the tracee has the one we know it by */
    RestoredProcess(int pid, Tracee main, WorkArea workArea, int session, boolean inNamespace) {
        this.pid = pid;
        this.host = new Pid(main.tid().value());
        this.main = main;
        this.memory = ProcessMemory.open(host);
        this.workArea = workArea;
        this.session = session;
        this.inNamespace = inNamespace;
        threads.add(main);
    }

    /** As the process itself sees it. */
    int pid() {
        return pid;
    }

    /** As this host knows it: another one when the process is in a pid namespace of its own. */
    Pid host() {
        return host;
    }

    /** Whether it is in a pid namespace of its tree's own. */
    boolean isInNamespace() {
        return inNamespace;
    }

    Tracee main() {
        return main;
    }

    ProcessMemory memory() {
        return memory;
    }

    /** All threads in the order of the image, the main one first. */
    List<Tracee> threads() {
        return threads;
    }

    int session() {
        return session;
    }

    void session(int id) {
        session = id;
    }

    ProcessImage image() {
        return image;
    }

    void image(ProcessImage what) {
        image = what;
    }

    /** Makes calls in the main thread. */
    CallTable.Results run(CallTable calls) {
        return workArea.run(memory, main, pid, pid, calls);
    }

    void run(Program program) {
        program.tables().forEach(this::run);
    }

    /** Makes one call that must succeed. */
    long call(String what, long number, long... arguments) {
        CallTable calls = new CallTable();
        int index = calls.must(what, number, arguments);
        return run(calls).result(index);
    }

    /** Makes calls in a thread of the process, given by its place in the image. */
    CallTable.Results runIn(int index, CallTable calls) {
        return workArea.run(
                memory, threads.get(index), pid, image.threads().get(index).tid(), calls);
    }

    /** Kills the process and takes its exit status as its tracer. */
    void kill() {
        Libc.call(SystemCall.KILL, host.value(), SIGKILL);
        for (int i = threads.size() - 1; i >= 0; i--) {
            threads.get(i).reap();
        }
        memory.close();
    }

    @Override
    public void close() {
        memory.close();
    }
}
