package io.stasis.engine.resource.ipc;

import io.stasis.linux.ptrace.CallTable;

/** The processes of a restored tree, all stopped. */
public interface IpcProcesses {
    /** Makes calls in a process; in the root process when there is none of this pid in the tree. */
    void run(int pid, CallTable calls);
}
