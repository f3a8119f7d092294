package io.stasis.engine.kinds;

import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.TreeEnds;
import io.stasis.engine.resource.event.EventCounters;
import io.stasis.engine.resource.event.EventPolls;
import io.stasis.engine.resource.event.FileWatchers;
import io.stasis.engine.resource.event.ProcessDescriptors;
import io.stasis.engine.resource.event.SignalQueues;
import io.stasis.engine.resource.event.TimerDescriptors;
import io.stasis.engine.resource.file.NamelessDescriptors;
import io.stasis.engine.resource.file.NamelessFiles;
import io.stasis.engine.resource.file.OpenFiles;
import io.stasis.engine.resource.file.RemovedDirectories;
import io.stasis.engine.resource.ipc.PosixQueues;
import io.stasis.engine.resource.outside.Externals;
import io.stasis.engine.resource.outside.Outside;
import io.stasis.engine.resource.outside.Terminals;
import io.stasis.engine.resource.pipe.Pipes;
import io.stasis.engine.resource.socket.InetSockets;
import io.stasis.engine.resource.socket.TreeSockets;
import io.stasis.engine.resource.socket.UnixSockets;
import io.stasis.engine.resource.terminal.PseudoTerminals;
import io.stasis.image.model.ComputationImage;
import java.util.List;
import java.util.Set;

/**
 * All kinds of open file descriptions.
 *
 * @param all in the order in which a capture asks them and a restart opens them
 */
public record Kinds(Pipes pipes, Terminals terminals, NamelessFiles namelessFiles, List<DescriptorKind<?>> all) {
    /** @param treePids processes of the tree, which may grow */
    public static Kinds forCapture(Set<Integer> treePids) {
        TreeEnds ends = new TreeEnds(treePids);
        TreeSockets sockets = new TreeSockets(treePids);
        return of(new Externals(ends, sockets), new Pipes(ends), new Terminals(treePids), treePids, sockets);
    }

    /** @param outside what a restart of the image finds */
    public static Kinds forRestore(ComputationImage image, Outside outside) {
        return of(
                new Externals(outside),
                new Pipes(image.pipes()),
                new Terminals(outside),
                Set.of(),
                new TreeSockets(Set.of()));
    }

    private static Kinds of(
            Externals externals, Pipes pipes, Terminals terminals, Set<Integer> treePids, TreeSockets sockets) {
        NamelessFiles namelessFiles = new NamelessFiles();
        return new Kinds(
                pipes,
                terminals,
                namelessFiles,
                List.of(
                        new PosixQueues(),
                        new NamelessDescriptors(namelessFiles),
                        new RemovedDirectories(),
                        new OpenFiles(treePids),
                        externals,
                        pipes,
                        new PseudoTerminals(treePids),
                        terminals,
                        new EventPolls(treePids),
                        new EventCounters(),
                        new SignalQueues(),
                        new TimerDescriptors(),
                        new ProcessDescriptors(treePids),
                        new UnixSockets(sockets),
                        new InetSockets(sockets),
                        new FileWatchers()));
    }
}
