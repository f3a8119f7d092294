package io.stasis.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.client.Protocol;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The manual page and the code say the same. */
class ManualTest {
    private static final Path PAGE = Path.of("src/main/man/stasis.1");

    static Stream<String> commands() {
        return Stasis.COMMANDS.stream();
    }

    @ParameterizedTest
    @MethodSource("commands")
    void theSectionOfACommandNamesAllItsOptionsAndNoOthers(String name) throws Exception {
        CommandSpec command = Stasis.commandLine().getSubcommands().get(name).getCommandSpec();
        String section = section(name);
        for (OptionSpec option : command.options()) {
            if (option.hidden() || isCommon(option)) {
                continue;
            }
            assertThat(section)
                    .as("option of " + name)
                    .contains(option.longestName().replace("-", "\\-"));
        }
        section.lines()
                .filter(line ->
                        line.startsWith(".BR \\-\\-") || line.startsWith(".B \\-\\-") || line.startsWith(".BI \\-\\-"))
                .map(line -> line.split("[ \"=]+")[1].replace("\\-", "-"))
                .filter(option -> !option.equals("--"))
                .forEach(option -> assertThat(command.optionsMap())
                        .as("documented for " + name)
                        .containsKey(option));
    }

    @Test
    void commonOptionsExitCodesAndVariablesAreDocumented() throws Exception {
        String page = Files.readString(PAGE);
        assertThat(page).contains("\\-\\-help", "\\-\\-version", "\\-\\-verbose", ".SH EXIT STATUS", ".SH ENVIRONMENT");
        for (String variable :
                new String[] {"STASIS_HOME", "STASIS_HOST", "STASIS_JAVA_HOME", "STASIS_AOT", "STASIS_COOKIE"}) {
            assertThat(page).contains(variable);
        }
        String codes = page.substring(page.indexOf(".SH EXIT STATUS"));
        new CommandLine(new Stasis())
                .getCommandSpec()
                .usageMessage()
                .exitCodeList()
                .keySet()
                .forEach(code -> assertThat(codes).contains("\n.B " + code.replace("-", "\\-") + "\n"));
    }

    @Test
    void thePageIsOfThisVersion() throws Exception {
        assertThat(Files.readString(PAGE)).contains("\"stasis " + Protocol.VERSION + "\"");
        assertThat(Files.readString(Path.of("pom.xml"))).contains("<version>" + Protocol.VERSION + "</version>");
    }

    private static boolean isCommon(OptionSpec option) {
        return option.usageHelp()
                || option.versionHelp()
                || option.longestName().equals("--verbose");
    }

    /** The text between a command's heading and the next heading. */
    private static String section(String name) throws Exception {
        String page = Files.readString(PAGE);
        int start = page.indexOf("\n.SS stasis " + name + "\n");
        assertThat(start).as("section of " + name).isNotNegative();
        int next = page.indexOf("\n.S", start + 1);
        return page.substring(start, next);
    }
}
