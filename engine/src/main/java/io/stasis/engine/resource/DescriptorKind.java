package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.image.model.OpenDescription;
import java.util.List;
import java.util.Optional;

/**
 * One kind of open file description, both directions: whoever adds a kind adds one implementation, names it in {@link
 * DescriptorCapture} and {@link DescriptorRestore}, and a record of {@link OpenDescription}.
 *
 * @param <D> what the image keeps of it
 */
interface DescriptorKind<D extends OpenDescription> {
    /** Whether this kind is responsible for the descriptor. The first kind that says so has it. */
    boolean claims(Descriptor descriptor);

    /** Why the descriptor cannot be captured although it is of this kind. Disturbs nothing, opens nothing. */
    Optional<Problem> problem(Descriptor descriptor);

    /** Captures the description behind the descriptor of a frozen process; called once for each description. */
    D capture(Descriptor descriptor);

    /** What stands in the way of opening it again on this host. */
    List<Problem> verify(D description);

    /** Adds the calls, to be run in the stub, that leave the description open at {@code target}. */
    void open(D description, int target, StubCalls stub);

    static Problem problem(Descriptor descriptor, String what, String reason, String advice) {
        return new Problem(descriptor.pid(), descriptor.fd(), what, reason, advice);
    }
}
