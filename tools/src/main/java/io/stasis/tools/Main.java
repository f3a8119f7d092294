package io.stasis.tools;

import io.stasis.client.ExitCode;
import io.stasis.client.StasisException;
import io.stasis.linux.KernelException;
import io.stasis.tools.launch.InheritedDescriptors;
import java.util.Arrays;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;

/**
 * Entry point of the {@code stasis} command.
 *
 * <p>Only the subcommand that was asked for is built: reading the annotations of all of them would cost every command a
 * noticeable part of its start-up. The whole tree is built for help and for errors.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        InheritedDescriptors inherited =
                arguments.length > 0 && arguments[0].equals("launch") ? InheritedDescriptors.now() : null;
        int status = run(inherited, arguments);
        System.out.flush();
        System.err.flush();
        // Nothing here needs a shutdown hook, and exit(3) by way of them takes longer.
        Runtime.getRuntime().halt(status);
    }

    /**
     * Runs one command.
     *
     * @param inherited descriptors to hand on, for {@code launch} only
     * @return its exit code
     */
    static int run(InheritedDescriptors inherited, String... arguments) {
        CommandLine line;
        String[] rest = arguments;
        Object command = arguments.length == 0 ? null : Stasis.command(arguments[0], inherited);
        if (command == null) {
            line = Stasis.commandLine();
        } else {
            line = new CommandLine(command);
            line.setCommandName("stasis " + arguments[0]);
            rest = Arrays.copyOfRange(arguments, 1, arguments.length);
        }
        return prepare(line).execute(rest);
    }

    private static CommandLine prepare(CommandLine line) {
        line.setParameterExceptionHandler(Main::usageError);
        line.setExecutionExceptionHandler((failure, failed, parsed) -> failed(failure, failed));
        line.setUsageHelpAutoWidth(false);
        line.setUsageHelpWidth(100);
        line.setCaseInsensitiveEnumValuesAllowed(true);
        return line;
    }

    private static int usageError(ParameterException error, String[] arguments) {
        CommandLine line = error.getCommandLine();
        System.err.println(
                "stasis: " + error.getMessage().replaceFirst("^Error: ", "").replaceAll("\\s*\\R\\s*", " ") + "; see '"
                        + line.getCommandSpec().qualifiedName() + " --help'");
        return ExitCode.USAGE;
    }

    private static int failed(Exception failure, CommandLine line) {
        boolean verbose = line.getCommand() instanceof StasisCommand command && command.verbose;
        String message = failure.getMessage() == null || failure.getMessage().isBlank()
                ? "unexpected " + failure.getClass().getSimpleName() + "; --verbose tells where"
                : failure.getMessage();
        System.err.println("stasis: " + message);
        if (verbose) {
            failure.printStackTrace();
        }
        return exitCode(failure);
    }

    private static int exitCode(Exception failure) {
        return switch (failure) {
            case StasisException e -> e.exitCode();
            case KernelException e -> ExitCode.FAILED;
            // By name: the class belongs to a library that most commands need not load.
            case Exception e when e.getClass().getName().equals("io.stasis.image.ImageException") -> ExitCode.IMAGE;
            default -> ExitCode.FAILED;
        };
    }
}
