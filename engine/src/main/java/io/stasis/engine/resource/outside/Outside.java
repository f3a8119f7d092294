package io.stasis.engine.resource.outside;

import io.stasis.engine.resource.Descriptor;
import io.stasis.linux.Pid;
import io.stasis.linux.proc.ProcStat;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;

/**
 * What the world outside the tree offers a restart: the standard descriptors and the terminal that the stub inherited
 * from the restart command.
 *
 * @param isKnown false while there is no stub yet
 * @param detached whether nothing of it is to be used
 * @param terminal path by which the terminal can be opened
 * @param standard which of 0, 1, 2 are open
 */
public record Outside(boolean isKnown, boolean detached, Optional<String> terminal, Set<Integer> standard) {
    /** Before there is a stub. */
    public static Outside unknown(boolean detached) {
        return new Outside(false, detached, Optional.empty(), Set.of());
    }

    /** What the stub has. */
    public static Outside of(Pid stub, boolean detached) {
        Set<Integer> open = new HashSet<>();
        Optional<String> terminal = Optional.empty();
        for (int fd = 0; fd <= 2; fd++) {
            Optional<Descriptor> descriptor = Descriptor.read(stub.value(), fd);
            if (descriptor.isPresent()) {
                open.add(fd);
                if (terminal.isEmpty() && Terminals.isTerminal(descriptor.get().status())) {
                    terminal = Optional.of(descriptor.get().link());
                }
            }
        }
        if (terminal.isEmpty() && ProcStat.read(stub).ttyNr() != 0) {
            terminal = Optional.of("/dev/tty");
        }
        return new Outside(true, detached, terminal, Set.copyOf(open));
    }
}
