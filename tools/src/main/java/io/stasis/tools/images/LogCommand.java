package io.stasis.tools.images;

import io.stasis.actors.replay.EventText;
import io.stasis.client.Json;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageVerifier;
import io.stasis.image.log.EventLog;
import io.stasis.tools.StasisCommand;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis log}. */
@Command(
        name = "log",
        description = {
            "Prints the event log: of an image's newest generation, or of the agent when no directory is given.",
            "Every record's checksum and place in the chain is checked."
        })
public final class LogCommand extends StasisCommand {
    private static final long LOOK_NANOS = 100_000_000L;

    @Parameters(paramLabel = "DIR", arity = "0..1", description = "Image directory.")
    private Path directory;

    @Option(names = "--generation", paramLabel = "N", description = "This generation instead of the newest.")
    private int generation;

    @Option(names = "--follow", description = "Go on with what is logged from now on, until interrupted.")
    private boolean follow;

    @Option(names = "--json", description = "One JSON object a line.")
    private boolean json;

    @Override
    public Integer call() {
        Path file = directory == null
                ? home().path().resolve(ImageVerifier.LOG)
                : logOf(ImageDirectory.open(directory), generation);
        try (EventLog log = EventLog.openReadOnly(file, this::print)) {
            while (follow) {
                LockSupport.parkNanos(LOOK_NANOS);
                log.poll(this::print);
                System.out.flush();
            }
        }
        return 0;
    }

    static Path logOf(ImageDirectory images, int generation) {
        return (generation > 0 ? images.generation(generation) : images.latest())
                .path()
                .resolve(ImageVerifier.LOG);
    }

    private void print(EventLog.Entry entry) {
        System.out.println(json ? Json.write(EventText.json(entry)) : EventText.line(entry));
    }
}
