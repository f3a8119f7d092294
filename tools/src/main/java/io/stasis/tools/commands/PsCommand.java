package io.stasis.tools.commands;

import io.stasis.client.Json;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.launch.AgentStarter;
import io.stasis.tools.output.Text;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code stasis ps}. */
@Command(name = "ps", description = "Lists the computations that the agent knows, on all hosts of its cluster.")
public final class PsCommand extends StasisCommand {
    private static final List<String> HEADINGS = List.of(
            "NAME", "HOST", "STATE", "ROOT", "PROCESSES", "THREADS", "GENERATION", "PAUSE", "SIZE", "DIRECTORY");

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() {
        Map<String, Object> result = new AgentStarter(home()).connect().request("ps", Map.of(), progress -> {});
        if (json) {
            System.out.println(Json.write(result));
            return 0;
        }
        List<List<String>> rows = new ArrayList<>();
        for (Map<String, Object> computation : Json.objects(result.get("computations"))) {
            rows.add(row(computation));
        }
        System.out.print(Text.table(HEADINGS, rows));
        List<?> hosts = Json.list(result.get("hosts"));
        if (hosts.size() > 1) {
            System.out.println("hosts: "
                    + String.join(", ", hosts.stream().map(Object::toString).toList()));
        }
        return 0;
    }

    private static List<String> row(Map<String, Object> computation) {
        long generation = Json.number(computation, "lastGeneration", 0);
        List<String> roots = Json.list(computation.get("roots")).stream()
                .map(Object::toString)
                .toList();
        return List.of(
                Json.string(computation, "name", "?"),
                Json.string(computation, "host", "?"),
                Json.string(computation, "state", "?").toLowerCase(java.util.Locale.ROOT),
                roots.isEmpty() ? "-" : String.join(",", roots),
                Json.string(computation, "processes", "-"),
                Json.string(computation, "threads", "-"),
                generation == 0 ? "-" : Long.toString(generation),
                generation == 0 ? "-" : Text.time(Json.number(computation, "lastPauseNanos", 0)),
                generation == 0 ? "-" : Text.bytes(Json.number(computation, "lastBytes", 0)),
                Json.string(computation, "dir", "-"));
    }
}
