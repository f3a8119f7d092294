package io.stasis.tools.commands;

import io.stasis.client.ExitCode;
import io.stasis.client.Json;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.launch.AgentStarter;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code stasis check}. */
@Command(
        name = "check",
        description = {
            "Tells what this host and user can do, and with --pid what in that tree of processes cannot be captured.",
            "Nothing is frozen. Exit code 4 when a checkpoint of the tree would be refused."
        })
public final class CheckCommand extends StasisCommand {
    @Option(names = "--pid", paramLabel = "PID", description = "Root process of the tree to look at.")
    private Integer pid;

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() {
        Map<String, Object> fields = pid == null ? Map.of() : Map.of("pid", pid);
        Map<String, Object> result = new AgentStarter(home()).connect().request("check", fields, progress -> {});
        List<Map<String, Object>> problems = Json.objects(result.get("problems"));
        if (json) {
            System.out.println(Json.write(result));
        } else {
            Json.objects(result.get("host")).forEach(line -> System.out.println(capability(line)));
            problems.forEach(problem -> System.out.println(describe(problem)));
            if (pid != null && problems.isEmpty()) {
                System.out.println("process " + pid + ": the whole tree can be checkpointed");
            }
        }
        return problems.isEmpty() ? ExitCode.OK : ExitCode.UNSUPPORTED;
    }

    private static String capability(Map<String, Object> line) {
        String detail = Json.string(line, "detail", "");
        return (Boolean.TRUE.equals(line.get("ok")) ? "yes  " : "no   ")
                + Json.string(line, "what", "?")
                + (detail.isEmpty() ? "" : ": " + detail);
    }

    private static String describe(Map<String, Object> problem) {
        long fd = Json.number(problem, "fd", -1);
        return "process " + Json.number(problem, "pid", 0)
                + (fd >= 0 ? ", descriptor " + fd : "")
                + ": " + Json.string(problem, "resource", "?")
                + ": " + Json.string(problem, "reason", "?")
                + "; " + Json.string(problem, "advice", "");
    }
}
