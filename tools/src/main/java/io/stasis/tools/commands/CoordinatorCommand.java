package io.stasis.tools.commands;

import io.stasis.actors.Agent;
import io.stasis.client.ExitCode;
import io.stasis.tools.StasisCommand;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code stasis coordinator}. */
@Command(
        name = "coordinator",
        description = {
            "Runs an agent in the foreground that other hosts' agents can join, with a prompt.",
            "At the prompt, or on standard input: the commands ps, checkpoint, kill, check, log, and quit."
        })
public final class CoordinatorCommand extends StasisCommand {
    @Option(
            names = "--host",
            paramLabel = "ADDRESS",
            description = "Address by which the other agents reach this one; chosen from the interfaces by default.")
    private String host;

    @Option(names = "--port", paramLabel = "PORT", description = "TCP port; 0, the default, for any free one.")
    private int port;

    @Option(names = "--port-file", paramLabel = "FILE", description = "Write the port to this file when ready.")
    private Path portFile;

    @Override
    public Integer call() throws IOException {
        try (Agent agent = AgentRun.start(AgentRun.clustered(home(), host, port, null))) {
            String address = agent.clusterAddress().orElseThrow();
            if (portFile != null) {
                AgentRun.writePortFile(portFile, address.substring(address.lastIndexOf(':') + 1));
            }
            System.out.println(
                    "coordinator: " + address + "; on other hosts run `stasis agent --join " + address + "`");
            Thread prompt = Thread.ofPlatform().daemon().name("prompt").start(() -> prompt(agent));
            agent.awaitTermination();
            prompt.interrupt();
        }
        return ExitCode.OK;
    }

    /** Runs commands until `quit`. At the end of the input the coordinator goes on without a prompt. */
    private void prompt(Agent agent) {
        boolean interactive = System.console() != null && System.console().isTerminal();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            while (true) {
                if (interactive) {
                    System.out.print("stasis> ");
                    System.out.flush();
                }
                String line = in.readLine();
                if (line == null) {
                    return;
                }
                if (line.strip().equals("quit")) {
                    agent.stop();
                    return;
                }
                if (!line.isBlank()) {
                    spec.root().commandLine().execute(line.strip().split("\\s+"));
                }
            }
        } catch (IOException e) {
            System.err.println("stasis: cannot read commands: " + e.getMessage());
        }
    }
}
