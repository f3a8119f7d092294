package io.stasis.tools.images;

import io.stasis.actors.replay.Explanation;
import io.stasis.actors.replay.Operation;
import io.stasis.actors.replay.Operations;
import io.stasis.actors.replay.Replay;
import io.stasis.actors.replay.Rerun;
import io.stasis.client.ExitCode;
import io.stasis.client.Json;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageVerifier;
import io.stasis.image.log.EventLog;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.explain.ChromeTrace;
import io.stasis.tools.explain.EntityPattern;
import io.stasis.tools.explain.LogPosition;
import io.stasis.tools.explain.Stepper;
import io.stasis.tools.explain.TimelinePage;
import io.stasis.tools.output.Text;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis replay}. */
@Command(
        name = "replay",
        description = {
            "Decides the events of a log again and compares: of an image's newest generation, of a log file, or of the agent "
                    + "when neither is given. Each event that would be decided otherwise is printed, and the exit status is 5.",
            "With an option it shows the states of entities instead, or explains what was done."
        })
public final class ReplayCommand extends StasisCommand {
    @Parameters(
            paramLabel = "DIR|LOG",
            arity = "0..1",
            description = "Image directory, or the file of an event log. Default: the agent's log.")
    private Path source;

    @Option(
            names = "--at",
            paramLabel = "SEQ|TIME",
            description = {
                "Print the state of every entity as of this record, or this time: \"2026-12-01 15:52:16.9\", or only its "
                        + "time of day.",
                "With --why, the operation that was under way then."
            })
    private String at;

    @Option(
            names = "--diff",
            paramLabel = "SEQ",
            arity = "2",
            description = "Print what changed in every entity between two records.")
    private List<Long> diff;

    @Option(
            names = "--why",
            description = "Explain why the last checkpoint or restart failed, or what it took its time for.")
    private boolean why;

    @Option(
            names = "--step",
            description =
                    "Walk through the log at a prompt, forward and backward, with the state of an entity after each step.")
    private boolean step;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            description = "Write a page that shows all checkpoints and restarts of the log on a time line.")
    private Path html;

    @Option(
            names = "--trace",
            paramLabel = "FILE",
            description = "Write them in Chrome's Trace Event Format, for Perfetto or chrome://tracing.")
    private Path trace;

    @Option(names = "--generation", paramLabel = "N", description = "This generation instead of the newest.")
    private int generation;

    @Option(
            names = "--entity",
            paramLabel = "PATTERN",
            description =
                    "Only entities whose name matches, with * and ?; a word without them may be anywhere in the name.")
    private String entity = "";

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        long kinds = Stream.of(diff != null, why, step, html != null, trace != null)
                .filter(given -> given)
                .count();
        if (kinds > 1) {
            throw usage("give one of --diff, --why, --step, --html and --trace");
        }
        if (diff != null && at != null) {
            throw usage("--diff and --at exclude each other");
        }
        List<EventLog.Entry> entries = new ArrayList<>();
        EventLog.openReadOnly(file(), entries::add).close();
        Predicate<String> chosen = EntityPattern.of(entity);
        if (why) {
            return explain(entries);
        }
        if (step) {
            return walk(entries);
        }
        if (html != null) {
            List<Explanation> told = operations(entries).stream()
                    .map(operation -> Explanation.of(operation, entries))
                    .toList();
            return write(html, TimelinePage.of(told));
        }
        if (trace != null) {
            return write(trace, Json.write(ChromeTrace.of(operations(entries))) + "\n");
        }
        if (diff != null) {
            return changes(Replay.changes(entries, diff.getFirst(), diff.getLast()), chosen);
        }
        return at != null ? states(entries, chosen) : rerun(Rerun.of(entries, chosen));
    }

    private Path file() {
        if (source == null) {
            return home().path().resolve(ImageVerifier.LOG);
        }
        return Files.isDirectory(source) ? LogCommand.logOf(ImageDirectory.open(source), generation) : source;
    }

    private long sequenceAt(List<EventLog.Entry> entries) {
        try {
            return LogPosition.sequence(entries, at);
        } catch (IllegalArgumentException e) {
            throw usage(e.getMessage());
        }
    }

    private int rerun(Rerun.Result result) {
        if (json) {
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("ok", result.differences().isEmpty());
            report.put("records", result.records());
            report.put("entities", result.entities());
            report.put("continued", List.copyOf(result.continued()));
            report.put(
                    "differences",
                    result.differences().stream().map(ReplayCommand::asMap).toList());
            System.out.println(Json.write(report));
        } else {
            result.differences()
                    .forEach(d -> System.out.println("record " + d.sequence() + " of " + d.entity() + "\n    recorded: "
                            + d.recorded() + "\n    decided:  " + d.decided()));
            System.out.println(Text.count(result.records(), "event", "events") + " of "
                    + Text.count(result.entities(), "entity", "entities") + " decided again: "
                    + (result.differences().isEmpty()
                            ? "all the same"
                            : Text.count(result.differences().size(), "difference", "differences"))
                    + (result.continued().isEmpty()
                            ? ""
                            : " (the log begins in the middle of "
                                    + Text.count(result.continued().size(), "life", "lives") + ")"));
        }
        return result.differences().isEmpty() ? ExitCode.OK : ExitCode.IMAGE;
    }

    private static Map<String, Object> asMap(Rerun.Difference difference) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("sequence", difference.sequence());
        map.put("entity", difference.entity());
        map.put("recorded", difference.recorded());
        map.put("decided", difference.decided());
        return map;
    }

    private int states(List<EventLog.Entry> entries, Predicate<String> chosen) {
        SortedMap<String, Map<String, Object>> states = Replay.stateAt(entries, sequenceAt(entries));
        states.keySet().removeIf(chosen.negate());
        if (json) {
            System.out.println(Json.write(states));
        } else {
            states.forEach((name, state) -> System.out.println(name + "\n    " + describe(state)));
        }
        return ExitCode.OK;
    }

    /** A state over several lines, indented from the second on. */
    static String describe(Map<String, Object> state) {
        StringBuilder text = new StringBuilder(String.valueOf(state.get("state")));
        state.forEach((key, value) -> {
            if (!key.equals("state")) {
                text.append("\n    ").append(key).append(": ").append(Json.write(value));
            }
        });
        return text.toString();
    }

    private int changes(SortedMap<String, Map<String, Replay.Change>> changes, Predicate<String> chosen) {
        changes.keySet().removeIf(chosen.negate());
        Map<String, Object> report = new LinkedHashMap<>();
        changes.forEach((name, parts) -> {
            Map<String, Object> both = new LinkedHashMap<>();
            parts.forEach((part, change) -> {
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("before", change.before());
                one.put("after", change.after());
                both.put(part, one);
            });
            report.put(name, both);
        });
        if (json) {
            System.out.println(Json.write(report));
            return ExitCode.OK;
        }
        changes.forEach((name, parts) -> {
            System.out.println(name);
            parts.forEach((part, change) ->
                    System.out.println("    " + part + ": " + value(change.before()) + " -> " + value(change.after())));
        });
        return ExitCode.OK;
    }

    private static String value(Object value) {
        return value == null ? "-" : value instanceof String text ? text : Json.write(value);
    }

    /** All of them that had begun by the time of --at. */
    private List<Operation> operations(List<EventLog.Entry> entries) {
        long sequence = at == null ? Long.MAX_VALUE : sequenceAt(entries);
        List<Operation> all = Operations.of(entries).stream()
                .filter(each -> each.firstSequence() <= sequence)
                .toList();
        if (all.isEmpty()) {
            throw usage("this log tells of no checkpoint or restart" + (at == null ? "" : " that had begun by " + at));
        }
        return all;
    }

    private int walk(List<EventLog.Entry> entries) throws IOException {
        // A terminal that can do nothing serves too, and so does a pipe.
        try (Terminal terminal =
                TerminalBuilder.builder().system(true).dumb(true).build()) {
            Stepper stepper = new Stepper(entries, terminal);
            stepper.select(entity);
            stepper.run();
            terminal.flush();
        }
        return ExitCode.OK;
    }

    private static int write(Path file, String text) throws IOException {
        Files.writeString(file, text);
        return ExitCode.OK;
    }

    private int explain(List<EventLog.Entry> entries) {
        Explanation explanation = Explanation.of(operations(entries).getLast(), entries);
        System.out.print(json ? Json.write(explanation.json()) + "\n" : explanation.text());
        return ExitCode.OK;
    }
}
