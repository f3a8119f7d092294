package io.stasis.actors.journal;

import io.stasis.image.log.EventLog;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * The logs that are open in this process. A log has one writer; the journal, which Akka makes, and the agent, which
 * forces and slices the log, must share it.
 */
public final class OpenLogs {
    /** An open log with its index. */
    public record Shared(EventLog log, LogIndex index) {}

    private static final Map<Path, Shared> OPEN = new HashMap<>();

    private OpenLogs() {}

    /** Opens the log, or gives the one that is open already. */
    public static synchronized Shared open(Path file) {
        return OPEN.computeIfAbsent(file.toAbsolutePath().normalize(), path -> {
            LogIndex index = new LogIndex();
            return new Shared(EventLog.open(path, index::add), index);
        });
    }

    /** Closes the log; for the end of an agent. */
    public static synchronized void close(Path file) {
        Shared shared = OPEN.remove(file.toAbsolutePath().normalize());
        if (shared != null && shared.log.isOpen()) {
            shared.log.force();
            shared.log.close();
        }
    }
}
