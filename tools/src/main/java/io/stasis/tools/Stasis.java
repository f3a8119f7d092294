package io.stasis.tools;

import io.stasis.tools.commands.AgentCommand;
import io.stasis.tools.commands.CheckCommand;
import io.stasis.tools.commands.CheckpointCommand;
import io.stasis.tools.commands.CoordinatorCommand;
import io.stasis.tools.commands.KillCommand;
import io.stasis.tools.commands.LaunchCommand;
import io.stasis.tools.commands.PsCommand;
import io.stasis.tools.commands.RestartCommand;
import io.stasis.tools.demo.DemoCommand;
import io.stasis.tools.images.InspectCommand;
import io.stasis.tools.images.KeygenCommand;
import io.stasis.tools.images.LogCommand;
import io.stasis.tools.images.ReplayCommand;
import io.stasis.tools.images.VerifyCommand;
import io.stasis.tools.launch.InheritedDescriptors;
import java.util.List;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.HelpCommand;

/** The {@code stasis} command with all its subcommands. */
@Command(
        name = "stasis",
        description = "Checkpoints running programs to an image directory and restarts them from there.",
        subcommands = HelpCommand.class,
        synopsisSubcommandLabel = "COMMAND",
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:Done. 'restart' in the foreground exits with the program's own status.",
            "1:The operation failed; the program is unharmed.",
            "2:The command was called the wrong way.",
            "3:No agent, it could not be started, or it is of another version.",
            "4:The program holds something that cannot be captured; the checkpoint was refused.",
            "5:The image is damaged, incomplete or not for this host.",
            "6:No such computation or process, or no permission.",
            "7:A process id of the image is taken on this host.",
            "126:'launch': the program cannot be run.",
            "127:'launch': the program was not found.",
            "128+N:'restart' in the foreground: signal N ended the program."
        },
        footer = {"", "'stasis help COMMAND' tells more about one command."})
final class Stasis extends StasisCommand {
    /** Names of the subcommands in the order of the help text. */
    static final List<String> COMMANDS = List.of(
            "launch",
            "checkpoint",
            "restart",
            "ps",
            "kill",
            "agent",
            "coordinator",
            "check",
            "inspect",
            "verify",
            "keygen",
            "log",
            "replay",
            "demo");

    @Override
    public Integer call() {
        throw usage("which command? One of " + String.join(", ", COMMANDS));
    }

    /** The subcommand of that name, or null. {@code inherited} may be null when it is not going to be run. */
    static StasisCommand command(String name, InheritedDescriptors inherited) {
        return switch (name) {
            case "launch" -> new LaunchCommand(inherited);
            case "checkpoint" -> new CheckpointCommand();
            case "restart" -> new RestartCommand();
            case "ps" -> new PsCommand();
            case "kill" -> new KillCommand();
            case "agent" -> new AgentCommand();
            case "coordinator" -> new CoordinatorCommand();
            case "inspect" -> new InspectCommand();
            case "verify" -> new VerifyCommand();
            case "keygen" -> new KeygenCommand();
            case "log" -> new LogCommand();
            case "replay" -> new ReplayCommand();
            case "demo" -> new DemoCommand();
            case "check" -> new CheckCommand();
            default -> null;
        };
    }

    /** The whole tree. */
    static CommandLine commandLine() {
        CommandLine line = new CommandLine(new Stasis());
        COMMANDS.forEach(name -> line.addSubcommand(name, command(name, null)));
        CommandLine completion = new CommandLine(new AutoComplete.GenerateCompletion());
        completion.getCommandSpec().usageMessage().hidden(true);
        line.addSubcommand("generate-completion", completion);
        return line;
    }
}
