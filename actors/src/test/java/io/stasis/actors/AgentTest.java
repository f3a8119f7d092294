package io.stasis.actors;

import static org.assertj.core.api.Assertions.assertThat;

import com.typesafe.config.ConfigFactory;
import io.stasis.actors.replay.EventText;
import io.stasis.actors.replay.Replay;
import io.stasis.engine.PidChoice;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageVerifier;
import io.stasis.image.log.EventLog;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An agent with an engine that has no kernel, and with every message going through its serializer. */
class AgentTest {
    private static final String SERIALIZE = "akka.actor.serialize-messages";
    private static final Tree TREE = new Tree("host", FakeEngine.PARENT, 7, "cookie", List.of("/bin/fake", "x"));

    @TempDir
    Path directory;

    private final FakeEngine engine = new FakeEngine();
    private Agent agent;
    private Requests requests;

    @BeforeAll
    static void serializeMessages() {
        System.setProperty(SERIALIZE, "on");
        ConfigFactory.invalidateCaches();
    }

    @AfterAll
    static void leaveThemAlone() {
        System.clearProperty(SERIALIZE);
        ConfigFactory.invalidateCaches();
    }

    @BeforeEach
    void start() {
        agent = Agent.start(AgentConfig.local(directory.resolve("state"), "host"), engine);
        requests = new Requests(agent.coordinator(), agent.system());
    }

    @AfterEach
    void stop() {
        agent.close();
    }

    private Path images() {
        return directory.resolve("images");
    }

    private void register() {
        assertThat(requests.register("fake", images().toString(), 0, TREE))
                .isEqualTo(new Answer.Registered("fake", images().toString()));
    }

    private Answer checkpoint(boolean kill) {
        return requests.checkpoint("host", "fake", 0, null, "/", kill);
    }

    @Test
    void aCheckpointGoesThroughItsPhasesAndCommitsAGeneration() {
        register();
        Answer answer = checkpoint(false);
        assertThat(answer).isInstanceOf(Answer.Checkpointed.class);
        assertThat(engine.calls.stream().filter(call -> !call.startsWith("warm") && !call.equals("close")))
                .containsExactly(
                        "SUSPEND 100",
                        "SUSPEND 101",
                        "DRAIN 100",
                        "DRAIN 101",
                        "WRITE 100",
                        "WRITE 101",
                        "REFILL 100",
                        "REFILL 101",
                        "RESUME 101",
                        "RESUME 100");
        Path generation = ImageDirectory.open(images()).latest().path();
        assertThat(ImageVerifier.verify(generation)).isEmpty();
    }

    @Test
    void theGenerationTellsItsOwnStory() {
        register();
        checkpoint(false);
        Path log = ImageDirectory.open(images()).latest().path().resolve(ImageVerifier.LOG);
        List<EventLog.Entry> entries = EventLog.openReadOnly(log).read(1);
        List<String> lines = entries.stream().map(EventText::line).toList();
        assertThat(lines).anyMatch(line -> line.contains("will suspend"));
        assertThat(lines).anyMatch(line -> line.contains("thread|host/100@7/100") && line.contains("in read"));
        assertThat(lines).anyMatch(line -> line.contains("connection|host/pipe:[5]") && line.contains("3 bytes"));
        // The intent of each step comes before its outcome.
        for (String process : List.of("process|host/100@7", "process|host/101@7")) {
            List<String> types = entries.stream()
                    .filter(entry -> entry.entity().equals(process))
                    .map(EventLog.Entry::type)
                    .toList();
            assertThat(types)
                    .containsExactly(
                            "process.intended.1",
                            "process.suspended.1",
                            "process.intended.1",
                            "process.drained.1",
                            "process.intended.1",
                            "process.written.1",
                            "process.intended.1",
                            "process.refilled.1",
                            "process.intended.1",
                            "process.resumed.1");
        }
        long suspended = entries.stream()
                .filter(entry -> entry.type().equals("process.suspended.1"))
                .findFirst()
                .orElseThrow()
                .sequence();
        assertThat(Replay.stateAt(entries, suspended).get("process|host/100@7")).containsEntry("phase", "SUSPEND");
    }

    @Test
    void aFailureInAnyPhaseLetsEverythingGoAndKeepsTheEarlierGeneration() {
        register();
        checkpoint(false);
        for (Phase phase : List.of(Phase.SUSPEND, Phase.DRAIN, Phase.WRITE, Phase.REFILL, Phase.RESUME)) {
            engine.failing = phase;
            engine.calls.clear();
            assertThat(checkpoint(false)).isEqualTo(new Answer.Refused("failed", 1, phase + " does not work"));
            assertThat(engine.calls).contains("close");
            engine.failing = null;
        }
        assertThat(ImageDirectory.open(images()).generations()).hasSize(1);
        assertThat(images().toFile().list()).containsExactlyInAnyOrder("0001", "latest");
        assertThat(checkpoint(false)).isInstanceOf(Answer.Checkpointed.class);
    }

    @Test
    void aKilledComputationIsRestartedAndCheckpointedAgain() {
        register();
        assertThat(checkpoint(true)).isInstanceOf(Answer.Checkpointed.class);
        assertThat(checkpoint(false)).isEqualTo(new Answer.Refused("no-such", 6, "computation fake does not run"));
        Answer prepared = requests.prepareRestart("host", images(), 0, options(false));
        assertThat(prepared).isInstanceOf(Answer.Prepared.class);
        Answer answer = requests.finishRestart("fake", ((Answer.Prepared) prepared).operation(), 1234);
        assertThat(answer).isInstanceOf(Answer.Restarted.class);
        Answer.Restarted restarted = (Answer.Restarted) answer;
        assertThat(restarted.root()).isEqualTo(FakeEngine.PARENT);
        assertThat(restarted.terminalSettings()).containsExactly(1, 2);
        assertThat(engine.calls).contains("adopt 1234", "RELEASE 100", "RELEASE 101");
        assertThat(checkpoint(false)).isInstanceOf(Answer.Checkpointed.class);
    }

    private static RestartOptions options(boolean detached) {
        return new RestartOptions(detached, false, false, PidChoice.DEFAULT);
    }

    @Test
    void aRestartThatFailsLeavesTheComputationEnded() {
        register();
        checkpoint(true);
        engine.failing = Phase.REBUILD;
        Answer.Prepared prepared = (Answer.Prepared) requests.prepareRestart("host", images(), 0, options(true));
        assertThat(requests.finishRestart("fake", prepared.operation(), 0))
                .isEqualTo(new Answer.Refused("failed", 1, "REBUILD does not work"));
        assertThat(engine.calls).contains("close restore");
        engine.failing = null;
        prepared = (Answer.Prepared) requests.prepareRestart("host", images(), 0, options(true));
        assertThat(requests.finishRestart("fake", prepared.operation(), 0)).isInstanceOf(Answer.Restarted.class);
    }

    @Test
    void aRunningComputationKeepsItsName() {
        register();
        assertThat(requests.register("fake", images().toString(), 0, TREE))
                .isInstanceOfSatisfying(
                        Answer.Refused.class,
                        refused -> assertThat(refused.code()).isEqualTo("name-taken"));
        engine.running = false;
        assertThat(requests.register("fake", images().toString(), 0, TREE)).isInstanceOf(Answer.Registered.class);
    }

    @Test
    void theNextAgentKnowsTheComputations() {
        register();
        checkpoint(false);
        agent.close();
        start();
        assertThat(requests.list())
                .isInstanceOfSatisfying(
                        Answer.Listed.class,
                        listed -> assertThat(listed.computations())
                                .singleElement()
                                .satisfies(computation -> {
                                    assertThat(computation.name()).isEqualTo("fake");
                                    assertThat(computation.last().number()).isEqualTo(1);
                                    assertThat(computation.processes()).isEqualTo(2);
                                }));
        assertThat(checkpoint(false)).isInstanceOf(Answer.Checkpointed.class);
    }

    @Test
    void anotherTreeIsCheckpointedByItsRoot() {
        Answer answer = requests.checkpoint("host", null, 100, null, directory.toString(), false);
        assertThat(answer).isInstanceOf(Answer.Checkpointed.class);
        assertThat(Files.isDirectory(directory.resolve("fake-100.ckpt/0001"))).isTrue();
        engine.running = false;
        assertThat(requests.checkpoint("host", null, 555, null, "/", false))
                .isInstanceOfSatisfying(
                        Answer.Refused.class,
                        refused -> assertThat(refused.exit()).isEqualTo(6));
    }

    @Test
    void onlyOneAgentRunsInADirectory() {
        org.assertj.core.api.Assertions.assertThatThrownBy(
                        () -> Agent.start(AgentConfig.local(directory.resolve("state"), "host"), engine))
                .hasMessageContaining("agent");
    }
}
