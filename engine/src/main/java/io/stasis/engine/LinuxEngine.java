package io.stasis.engine;

import io.stasis.engine.capture.TreeCheckpoint;
import io.stasis.engine.restore.TreeRestore;
import java.util.List;

/** The engine on a Linux kernel. */
public final class LinuxEngine implements Engine {
    @Override
    public CheckpointSession checkpoint(CheckpointRequest request) {
        return new TreeCheckpoint(request);
    }

    @Override
    public RestoreSession restore(RestoreRequest request) {
        return new TreeRestore(request);
    }

    @Override
    public List<Problem> survey(CheckpointRequest request) {
        try (TreeCheckpoint checkpoint = new TreeCheckpoint(request)) {
            return checkpoint.survey();
        }
    }

    @Override
    public List<HostCapability> capabilities() {
        return HostCapabilities.all();
    }

    @Override
    public void warmUp() {
        WarmUp.run();
    }
}
