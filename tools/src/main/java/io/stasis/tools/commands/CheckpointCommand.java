package io.stasis.tools.commands;

import io.stasis.client.Json;
import io.stasis.client.StasisClient;
import io.stasis.client.StasisClient.Generation;
import io.stasis.client.StasisClient.Target;
import io.stasis.image.seal.SigningKey;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.launch.AgentStarter;
import io.stasis.tools.output.ProgressLine;
import io.stasis.tools.output.Text;
import java.nio.file.Path;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis checkpoint}. */
@Command(
        name = "checkpoint",
        description = {
            "Saves a running program with all its processes to a new generation of its image directory.",
            "Returns when the generation is safe on disk. The program runs on, unless --kill is given."
        })
public final class CheckpointCommand extends StasisCommand {
    @Parameters(arity = "0..1", paramLabel = "NAME", description = "Name of a launched computation, see 'stasis ps'.")
    private String name;

    @Option(names = "--pid", paramLabel = "PID", description = "Root process of any running tree instead of a name.")
    private Integer pid;

    @Option(names = "--all", description = "All computations.")
    private boolean all;

    @Option(
            names = "--dir",
            paramLabel = "DIR",
            description =
                    "Image directory. Default: the computation's own; for --pid of a program that was not launched, "
                            + "NAME.ckpt in the current directory.")
    private Path directory;

    @Option(names = "--kill", description = "End the program once its image is complete.")
    private boolean kill;

    @Option(
            names = "--sign",
            paramLabel = "KEY",
            description = "Sign the generation with the key in this file, see 'stasis keygen'.")
    private Path key;

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() {
        Target target =
                TargetOptions.one(name, pid, all).orElseThrow(() -> usage("give one of NAME, --pid PID or --all"));
        if (key != null) {
            SigningKey.read(key); // what is wrong with it is told before anything is done
        }
        StasisClient agent = new AgentStarter(home()).connect();
        Map<String, Object> result;
        try (ProgressLine progress = new ProgressLine()) {
            Map<String, Object> fields = StasisClient.checkpointFields(target, directory, kill);
            if (key != null) {
                fields.put("sign", key.toAbsolutePath());
            }
            result = agent.request("checkpoint", fields, progress);
        }
        if (json) {
            System.out.println(Json.write(result));
        } else {
            StasisClient.generations(result).forEach(made -> System.out.println(describe(made)));
        }
        return 0;
    }

    /** Such as "counter: generation 3, 4 processes, 12 threads, 18.3 MB, paused 4.1 ms -> counter.ckpt/0003". */
    public static String describe(Generation made) {
        return made.name() + ": generation " + made.generation()
                + ", " + Text.count(made.processes(), "process", "processes")
                + ", " + Text.count(made.threads(), "thread", "threads")
                + ", " + Text.bytes(made.bytes())
                + ", paused " + Text.time(made.pauseNanos())
                + " -> " + fromHere(made.path());
    }

    private static Path fromHere(Path path) {
        Path here = Path.of("").toAbsolutePath();
        return path.startsWith(here) ? here.relativize(path) : path;
    }
}
