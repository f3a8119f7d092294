package io.stasis.tools.commands;

import io.stasis.client.Json;
import io.stasis.client.StasisClient;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.launch.AgentStarter;
import io.stasis.tools.output.Text;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis kill}. */
@Command(
        name = "kill",
        description =
                "Ends a computation with all its processes: SIGTERM first, SIGKILL for what is left after the grace.")
public final class KillCommand extends StasisCommand {
    @Parameters(paramLabel = "NAME|PID", description = "Name of a computation, or the pid of its root process.")
    private String target;

    @Option(names = "--now", description = "SIGKILL at once.")
    private boolean now;

    @Option(
            names = "--grace",
            paramLabel = "SECONDS",
            defaultValue = "10",
            description = "Time between SIGTERM and SIGKILL. Default: ${DEFAULT-VALUE}.")
    private double grace;

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() {
        if (!(grace >= 0 && grace <= 86400)) {
            throw usage("--grace takes seconds between 0 and 86400");
        }
        StasisClient agent = new AgentStarter(home()).connect();
        List<Integer> killed = agent.kill(TargetOptions.nameOrPid(target), now, Math.round(grace * 1000));
        System.out.println(
                json
                        ? Json.write(Map.of("killed", killed))
                        : target + ": " + Text.count(killed.size(), "process", "processes") + " ended");
        return 0;
    }
}
