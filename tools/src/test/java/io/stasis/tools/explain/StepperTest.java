package io.stasis.tools.explain;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.actors.serialization.EventCodec;
import io.stasis.actors.serialization.EventTypes;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle.Event;
import io.stasis.image.log.EventLog;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.jline.terminal.impl.DumbTerminal;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Commands go in through a terminal that can do nothing, and what is shown comes out of it. */
class StepperTest {
    private static final String ONE = "process|host/1@1";
    private static final Pattern RECORD = Pattern.compile("([0-9]+)  20[0-9]{2}-");
    private static final String TWO = "process|host/2@1";

    @TempDir
    Path directory;

    private List<EventLog.Entry> entries;

    @BeforeEach
    void aLog() {
        try (EventLog log = EventLog.open(directory.resolve("events.log"))) {
            entries = log.append(List.of(
                    draft(ONE, 1, new Event.Intended(Phase.SUSPEND, "job#1")),
                    draft(TWO, 1, new Event.Intended(Phase.CREATE, "job#1")),
                    draft(ONE, 2, new Event.Failed(Phase.SUSPEND, "needle in a haystack")),
                    draft(TWO, 2, new Event.Abandoned("gone")),
                    draft(ONE, 3, new Event.Abandoned("gone"))));
        }
    }

    private static EventLog.Draft draft(String entity, long number, Object event) {
        return new EventLog.Draft(entity, number, 0, EventTypes.name(event), EventCodec.encode(event));
    }

    /** What is shown after the greeting. */
    private String session(String... commands) throws Exception {
        var in = new ByteArrayInputStream((String.join("\n", commands) + "\n").getBytes(StandardCharsets.UTF_8));
        var out = new ByteArrayOutputStream();
        try (var terminal = new DumbTerminal("test", "dumb", in, out, StandardCharsets.UTF_8)) {
            new Stepper(entries, terminal).run();
            terminal.flush();
        }
        return out.toString(StandardCharsets.UTF_8).replace("\r", "");
    }

    private static List<String> records(String shown) {
        // A terminal that can do nothing may have the prompt and what was typed on the same line.
        return RECORD.matcher(shown).results().map(found -> found.group(1)).toList();
    }

    @Test
    void itStepsForwardAndBackAndToTheEnds() throws Exception {
        assertThat(records(session("next", "n 2", "", "b", "back 2", "last", "first", "quit")))
                .containsExactly("1", "2", "4", "5", "4", "2", "5", "1");
    }

    @Test
    void atTheEndsItSaysSo() throws Exception {
        assertThat(session("b")).contains("this is the first record");
        assertThat(session("last", "n")).contains("this is the last record");
        assertThat(session("n x")).contains("how many records?");
    }

    @Test
    void theStateIsThatAsOfTheRecord() throws Exception {
        String shown = session("g 3", "b 2");
        assertThat(shown)
                .contains(ONE + ": Broken, phase SUSPEND, reason needle in a haystack")
                .contains(ONE + ": Doing, phase SUSPEND, cause job#1");
    }

    @Test
    void aSelectedEntityIsFollowed() throws Exception {
        String shown = session("entity *host/2@*", "next", "next", "next", "e", "first");
        assertThat(records(shown)).containsExactly("1", "2", "4", "1");
        assertThat(shown).contains(TWO + ": Ended");
    }

    @Test
    void aSearchGoesBothWays() throws Exception {
        assertThat(records(session("/needle", "?CREATE", "?create", "/needle"))).containsExactly("1", "3", "2", "3");
        assertThat(session("/nowhere")).contains("contains \"nowhere\"");
    }

    @Test
    void allEntitiesAreListed() throws Exception {
        assertThat(session("list")).contains(ONE + ": Doing", TWO + ": not there yet");
    }

    @Test
    void whatIsUnknownIsSaid() throws Exception {
        assertThat(session("dance")).contains("unknown command dance");
        assertThat(session("goto yesterday")).contains("neither the number of a record nor a time");
        assertThat(session("help")).contains("entity PATTERN");
    }
}
