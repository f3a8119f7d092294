package io.stasis.tools.images;

import io.stasis.actors.replay.Replay;
import io.stasis.client.Json;
import io.stasis.image.ImageDirectory;
import io.stasis.image.log.EventLog;
import io.stasis.tools.StasisCommand;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis replay}. */
@Command(
        name = "replay",
        description = "Plays an event log back and prints the state of every entity as of one of its records.")
public final class ReplayCommand extends StasisCommand {
    @Parameters(paramLabel = "DIR|LOG", description = "Image directory, or the file of an event log.")
    private Path source;

    @Option(names = "--at", paramLabel = "SEQ", description = "Number of the last record that counts; all by default.")
    private long at = Long.MAX_VALUE;

    @Option(names = "--generation", paramLabel = "N", description = "This generation instead of the newest.")
    private int generation;

    @Option(names = "--entity", paramLabel = "TEXT", description = "Only entities whose name contains this.")
    private String entity = "";

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() {
        Path file = Files.isDirectory(source) ? LogCommand.logOf(ImageDirectory.open(source), generation) : source;
        List<EventLog.Entry> entries = new ArrayList<>();
        EventLog.openReadOnly(file, entries::add).close();
        SortedMap<String, Map<String, Object>> states = Replay.stateAt(entries, at);
        states.keySet().removeIf(name -> !name.contains(entity));
        if (json) {
            System.out.println(Json.write(states));
        } else {
            states.forEach((name, state) -> System.out.println(name + "\n    " + describe(state)));
        }
        return 0;
    }

    private static String describe(Map<String, Object> state) {
        StringBuilder text = new StringBuilder(String.valueOf(state.get("state")));
        state.forEach((key, value) -> {
            if (!key.equals("state")) {
                text.append("\n    ").append(key).append(": ").append(Json.write(value));
            }
        });
        return text.toString();
    }
}
