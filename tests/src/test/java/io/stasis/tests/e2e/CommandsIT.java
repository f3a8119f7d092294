package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The commands that report. */
class CommandsIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @Test
    void psShowsWhatRunsAndWhatWasLastSaved() {
        var target = stasis.launch(Programs.c("threads").with("24"));
        target.checkpoint();
        assertThat(stasis.run("ps").expectSuccess().out()).contains(target.name());
        JsonNode computation = null;
        for (JsonNode each : stasis.run("ps", "--json").expectSuccess().json().path("computations")) {
            computation = each.path("name").asText().equals(target.name()) ? each : computation;
        }
        assertThat(computation).isNotNull();
        assertThat(computation.path("lastGeneration").asInt()).isEqualTo(1);
        assertThat(computation.path("roots").path(0).asLong()).isEqualTo(target.pid());
        assertThat(computation.path("lastPauseNanos").asLong()).isPositive();
        target.finish();
    }

    @Test
    void inspectShowsProcessesThreadsMemoryAndDescriptors() {
        var target = stasis.launch(Programs.c("pipes"));
        target.checkpoint();
        String text =
                stasis.run("inspect", target.image().toString()).expectSuccess().out();
        assertThat(text).contains(Long.toString(target.pid()), "pipe", "fifo", "/dev/null");
        assertThat(stasis.run("inspect", "--json", target.image().toString())
                        .expectSuccess()
                        .json()
                        .isContainerNode())
                .isTrue();
        target.finish();
    }

    @Test
    void theLogTellsTheGenerationsStory() throws IOException {
        var target = stasis.launch(Programs.c("counter"));
        target.checkpoint();
        target.checkpointAndKill();
        target.restart();
        target.checkpoint();
        String story =
                stasis.run("log", target.image().toString()).expectSuccess().out();
        assertThat(story).containsIgnoringCase("suspend").containsIgnoringCase("resume");
        var phases = new TreeSet<String>();
        long last = 0;
        String json = stasis.run("log", "--json", target.image().toString())
                .expectSuccess()
                .out();
        for (String line : json.lines().toList()) {
            JsonNode event = new ObjectMapper().readTree(line);
            assertThat(event.path("sequence").asLong()).isGreaterThan(last);
            last = event.path("sequence").asLong();
            phases.add(event.path("type").asText());
        }
        assertThat(phases).hasSizeGreaterThan(5);
        assertThat(stasis.run("replay", target.image().toString(), "--at", Long.toString(last))
                        .expectSuccess()
                        .out())
                .contains(target.name());
        assertThat(stasis.run("log").expectSuccess().out()).contains(target.name());
        target.finish();
    }

    @Test
    void whatHappenedIsDecidedAgainAndExplained() {
        var target = stasis.launch(Programs.c("pipes"));
        target.checkpoint();
        target.checkpointAndKill();
        target.restart();
        String image = target.image().toString();
        for (String[] log : new String[][] {{"replay", image, "--generation", "1"}, {"replay", image}, {"replay"}}) {
            assertThat(stasis.run(log).expectSuccess().out()).contains("decided again: all the same");
        }
        JsonNode result = stasis.run("replay", "--json").expectSuccess().json();
        assertThat(result.path("ok").asBoolean()).isTrue();
        assertThat(result.path("records").asInt()).isPositive();
        assertThat(stasis.run("replay", "--why").expectSuccess().out())
                .contains("restart ", "REBUILD", "waited for: process|");
        JsonNode why = stasis.run("replay", "--why", image, "--generation", "1", "--json")
                .expectSuccess()
                .json();
        assertThat(why.path("kind").asText()).isEqualTo("checkpoint");
        assertThat(why.path("phases").size()).isEqualTo(5);
        assertThat(why.path("thread").asText()).contains("system call");
        assertThat(stasis.run("replay", image, "--diff", "1", "6", "--entity", "process|*")
                        .expectSuccess()
                        .out())
                .contains("process|", "SUSPEND");
        stasis.run("replay", image, "--at", "yesterday").expectExit(2);
        stasis.run("replay", image, "--at", "3", "--diff", "1", "2").expectExit(2);
        target.finish();
    }

    /** The agent's log tells afterwards what was in the way. */
    @Test
    void aRefusedCheckpointIsExplained() throws IOException {
        var target = stasis.launch(Programs.c("unsupported").with("netlink"));
        Files.createFile(Path.of(target.progress().file() + ".go"));
        target.awaitLine("holds");
        stasis.run("checkpoint", target.name()).expectExit(4);
        assertThat(stasis.run("replay", "--why").expectSuccess().out())
                .contains("before its first phase, with nothing frozen", "socket:[");
        target.end();
    }

    @Test
    void imagesAreForTheirOwnerOnly() throws IOException {
        var target = stasis.launch(Programs.c("counter"));
        target.checkpoint();
        for (var path : io.stasis.tests.harness.DirectoryTree.files(target.image())) {
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
                    .as(path.toString())
                    .isEqualTo("rw-------");
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path.getParent())))
                    .isEqualTo("rwx------");
        }
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(stasis.state())))
                .isEqualTo("rwx------");
        target.finish();
    }

    @Test
    void wrongUseIsAnsweredWithStatus2() {
        for (String[] command :
                new String[][] {{"fly"}, {"checkpoint"}, {"checkpoint", "a", "--all"}, {"restart"}, {"launch"}, {"kill"}
                }) {
            stasis.run(command).expectExit(2);
        }
        assertThat(stasis.run("--version").expectSuccess().out()).contains("0.1.0");
        assertThat(stasis.run("--help").expectSuccess().out()).contains("launch", "checkpoint", "restart");
    }

    @Test
    void checkTellsWhatThisHostCanDo() {
        assertThat(stasis.run("check").expectSuccess().out()).isNotBlank();
        assertThat(stasis.run("check", "--json")
                        .expectSuccess()
                        .json()
                        .path("host")
                        .size())
                .isPositive();
    }

    @Test
    void anAgentThatIsStoppedLeavesProgramsAloneAndStartsAgainByItself() {
        var target = stasis.launch(Programs.c("counter"));
        long agent = stasis.agent();
        stasis.run("agent", "--stop").expectSuccess();
        assertThat(stasis.run("agent", "--status").exit()).isEqualTo(3);
        target.awaitMoreTicks();
        target.checkpoint();
        assertThat(stasis.agent()).isPositive().isNotEqualTo(agent);
        target.checkpointAndKill();
        target.restart();
        target.finish();
    }
}
