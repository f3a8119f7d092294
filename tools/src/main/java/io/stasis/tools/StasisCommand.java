package io.stasis.tools;

import io.stasis.client.StateDirectory;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What all subcommands have in common. The value of {@link #call} is the exit code. */
@Command(
        mixinStandardHelpOptions = true,
        versionProvider = StasisCommand.Version.class,
        sortOptions = false,
        usageHelpWidth = 100)
public abstract class StasisCommand implements Callable<Integer> {
    @Option(names = "--verbose", description = "On failure print where in the code it happened.")
    protected boolean verbose;

    @Spec
    protected CommandSpec spec;

    private static StateDirectory trainingHome;

    protected StateDirectory home() {
        return trainingHome != null ? trainingHome : StateDirectory.current();
    }

    /** Lets the commands of this process talk to a stand-in for the agent; null for the real one again. */
    static void trainWith(StateDirectory home) {
        trainingHome = home;
    }

    /** The command was called the wrong way (exit code 2). */
    protected ParameterException usage(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    /** Text of {@code --version}. */
    static final class Version implements CommandLine.IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {"stasis " + io.stasis.client.Protocol.VERSION};
        }
    }
}
