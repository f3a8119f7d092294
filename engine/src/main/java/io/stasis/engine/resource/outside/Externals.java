package io.stasis.engine.resource.outside;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.TreeEnds;
import io.stasis.engine.resource.socket.TreeSockets;
import io.stasis.image.model.OpenDescription.External;
import io.stasis.linux.libc.Fcntl;
import java.util.List;

/**
 * Standard input, output and error that lead out of the tree: a pipe to a pager, a supervisor's socket. At restart the
 * restart command's own descriptor of the same number takes the place, or /dev/null in a detached restart.
 */
public final class Externals implements DescriptorKind<External> {
    private final TreeEnds pipes;
    private final TreeSockets sockets;
    private final Outside outside;

    /** For a capture. */
    public Externals(TreeEnds pipes, TreeSockets sockets) {
        this.pipes = pipes;
        this.sockets = sockets;
        this.outside = null;
    }

    /** For a restore. */
    public Externals(Outside outside) {
        this.pipes = null;
        this.sockets = null;
        this.outside = outside;
    }

    @Override
    public Class<External> type() {
        return External.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return role(descriptor) >= 0;
    }

    /** The standard descriptor that this one shares its far end with; -1 when it stays inside the tree. */
    private int role(Descriptor descriptor) {
        if (descriptor.status().isFifo() && descriptor.link().startsWith("pipe:")) {
            return pipes.leadsOutside(descriptor.link()) ? pipes.standardRole(descriptor.link()) : -1;
        }
        return descriptor.status().isSocket() && sockets.leadsOutside(descriptor)
                ? sockets.standardRole(descriptor)
                : -1;
    }

    @Override
    public External capture(Descriptor descriptor) {
        return new External(descriptor.statusFlags(), role(descriptor), descriptor.link());
    }

    @Override
    public List<Problem> verify(External description) {
        if (outside.detached() || !outside.isKnown() || outside.standard().contains(description.role())) {
            return List.of();
        }
        return List.of(new Problem(
                0,
                description.role(),
                description.what(),
                "it leads outside the program, and the restart command's descriptor " + description.role()
                        + " is closed",
                "open it, for example with `< /dev/null`, or restart with --detach"));
    }

    @Override
    public void open(External description, int target, StubCalls stub) {
        if (outside.detached()) {
            stub.open("/dev/null", description.statusFlags() & Fcntl.O_ACCMODE, target);
        } else {
            stub.duplicate(description.role(), target);
        }
    }
}
