package io.stasis.tools.commands;

import io.stasis.client.ExitCode;
import io.stasis.client.Json;
import io.stasis.client.StasisClient;
import io.stasis.client.StasisException;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.launch.AgentProcess;
import io.stasis.tools.launch.AgentStarter;
import io.stasis.tools.output.Text;
import java.time.Duration;
import java.util.Map;
import java.util.OptionalInt;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code stasis agent}. */
@Command(
        name = "agent",
        description = {
            "Starts the agent of this user on this host, or ends it, or tells how it is.",
            "Other commands start it by themselves. Ending it does not touch running programs."
        })
public final class AgentCommand extends StasisCommand {
    @ArgGroup
    private Action action = new Action();

    private static final class Action {
        @Option(names = "--stop", description = "End the agent, also one of another version.")
        private boolean stop;

        @Option(names = "--status", description = "Tell its pid, version, age and memory. Exit code 3 when none runs.")
        private boolean status;

        @Option(names = "--foreground", description = "Run the agent in this process until it is ended.")
        private boolean foreground;

        @Option(names = "--daemon", hidden = true, description = "What other commands start.")
        private boolean daemon;
    }

    @Option(
            names = "--join",
            paramLabel = "HOST:PORT",
            description = {
                "Run the agent in this process as a member of the cluster of that coordinator.",
                "STASIS_COORDINATOR names it too."
            })
    private String join;

    @Option(
            names = "--host",
            paramLabel = "ADDRESS",
            description = "With --join: address by which the other agents reach this one.")
    private String host;

    @Option(names = "--port", paramLabel = "PORT", description = "With --join: TCP port; any free one by default.")
    private int port;

    @Option(names = "--json", description = "Report as JSON, with --status.")
    private boolean json;

    @Override
    public Integer call() {
        if (action.stop) {
            return stop();
        }
        String coordinator = join != null ? join : System.getenv("STASIS_COORDINATOR");
        if (action.foreground || action.daemon || join != null) {
            return run(coordinator);
        }
        StasisClient agent = action.status ? StasisClient.of(home()) : new AgentStarter(home()).connect();
        Map<String, Object> status = agent.request("status", Map.of(), progress -> {});
        System.out.println(json ? Json.write(status) : describe(status));
        return ExitCode.OK;
    }

    private int run(String coordinator) {
        if (action.daemon) {
            AgentRun.becomeDaemon();
        }
        var config = coordinator == null || coordinator.isEmpty()
                ? AgentRun.local(home())
                : AgentRun.clustered(home(), host, port, coordinator);
        try (var agent = AgentRun.start(config)) {
            if (!action.daemon) {
                System.out.println("agent: serving on " + config.socket());
            }
            agent.awaitTermination();
        }
        return ExitCode.OK;
    }

    private int stop() {
        OptionalInt pid = new AgentProcess(home()).stop();
        if (pid.isEmpty()) {
            throw new StasisException("no-agent", ExitCode.NO_AGENT, "no agent listens on " + home().socket());
        }
        System.out.println("agent: process " + pid.getAsInt() + " ended");
        return ExitCode.OK;
    }

    private static String describe(Map<String, Object> status) {
        Map<String, Object> log = Json.object(status.get("log"));
        Map<String, Object> cluster = Json.object(status.get("cluster"));
        return "agent: process " + Json.number(status, "pid", 0)
                + ", version " + Json.string(status, "version", "?")
                + ", host " + Json.string(status, "host", "?")
                + ", up " + Text.age(Duration.ofMillis(Json.number(status, "uptimeMillis", 0)))
                + ", " + Text.bytes(Json.number(status, "rss", 0)) + " resident"
                + ", " + Text.count(Json.number(status, "computations", 0), "computation", "computations")
                + ", " + Text.count(Json.number(log, "sequence", 0), "event", "events")
                + " (" + Text.bytes(Json.number(log, "bytes", 0)) + ")"
                + (cluster.isEmpty()
                        ? ""
                        : ", cluster member " + Json.string(cluster, "address", "?") + " of "
                                + Json.list(cluster.get("members")).size());
    }
}
