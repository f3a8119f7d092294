package io.stasis.tools.explain;

import io.stasis.actors.journal.EventLogJournal;
import io.stasis.actors.replay.EventText;
import io.stasis.actors.replay.Replay;
import io.stasis.client.Json;
import io.stasis.image.log.EventLog;
import java.io.PrintWriter;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.jline.reader.EndOfFileException;
import org.jline.reader.LineReader;
import org.jline.reader.LineReaderBuilder;
import org.jline.reader.UserInterruptException;
import org.jline.reader.impl.completer.StringsCompleter;
import org.jline.terminal.Terminal;

/**
 * Walks through a log, record by record, at a prompt: forward and backward, to a record or a time, to the next one that
 * tells of something. After each step the state of an entity is shown as of that record: of those that were selected, else
 * of the one that the record belongs to.
 */
public final class Stepper {
    private static final String HELP = """
            next [N], n, Enter   forward, by N records      back [N], b    backward
            goto SEQ|TIME, g     to a record or a time      first, last    to the ends
            /TEXT                forward to a record that contains the text; ?TEXT backward
            entity PATTERN, e    stay with these entities, with * and ?; alone: all of them again
            list, l              all entities and their states
            state, s             the state again            quit, q        leave
            """;
    private static final List<String> WORDS =
            List.of("next", "back", "goto", "first", "last", "entity", "list", "state", "help", "quit");

    private final List<EventLog.Entry> entries;
    private final Terminal terminal;
    private final PrintWriter out;
    /** Of the record that is shown; -1 before the first. */
    private int at = -1;

    private String pattern = "";
    private Predicate<String> chosen = name -> true;

    /** @param entries of one log, in order */
    public Stepper(List<EventLog.Entry> entries, Terminal terminal) {
        this.entries = entries.stream()
                .filter(entry -> !entry.type().equals(EventLogJournal.DELETION))
                .toList();
        this.terminal = terminal;
        this.out = terminal.writer();
    }

    /** Selects entities, as the command does. */
    public void select(String wanted) {
        pattern = wanted;
        chosen = EntityPattern.of(wanted);
    }

    /** Reads commands until the user leaves. */
    public void run() {
        LineReader reader = LineReaderBuilder.builder()
                .terminal(terminal)
                .completer(new StringsCompleter(WORDS))
                // A search may begin with what a shell would take for its history.
                .option(LineReader.Option.DISABLE_EVENT_EXPANSION, true)
                .build();
        out.println(entries.size() + " records; 'help' tells the commands");
        move(1, 1);
        while (true) {
            try {
                if (!obey(reader.readLine(prompt()).strip())) {
                    return;
                }
            } catch (EndOfFileException | UserInterruptException e) {
                return;
            }
            out.flush();
        }
    }

    private String prompt() {
        long sequence = at < 0 ? 0 : entries.get(at).sequence();
        return "[" + sequence + (pattern.isEmpty() ? "" : " " + pattern) + "] ";
    }

    /** False to leave. */
    private boolean obey(String line) {
        if (line.startsWith("/") || line.startsWith("?")) {
            search(line.substring(1), line.startsWith("/") ? 1 : -1);
            return true;
        }
        int blank = line.indexOf(' ');
        String word = blank < 0 ? line : line.substring(0, blank);
        String rest = blank < 0 ? "" : line.substring(blank + 1).strip();
        switch (word) {
            case "", "next", "n" -> move(1, number(rest));
            case "back", "b" -> move(-1, number(rest));
            case "first" -> moveFrom(-1, 1);
            case "last" -> moveFrom(entries.size(), -1);
            case "goto", "g" -> jump(rest);
            case "entity", "e" -> {
                select(rest);
                showState();
            }
            case "list", "l" -> list();
            case "state", "s" -> showState();
            case "help", "h" -> out.print(HELP);
            case "quit", "q" -> {
                return false;
            }
            default -> out.println("unknown command " + word + "; 'help' tells the commands");
        }
        return true;
    }

    /** A count; 0 for what is none. */
    private static int number(String text) {
        return text.isEmpty() ? 1 : text.matches("[0-9]{1,9}") ? Integer.parseInt(text) : 0;
    }

    private void move(int direction, int count) {
        if (count == 0) {
            out.println("how many records? A number from 1 on");
            return;
        }
        int reached = at;
        for (int i = 0; i < count; i++) {
            int next = next(reached, direction);
            if (next < 0) {
                break;
            }
            reached = next;
        }
        if (reached == at) {
            out.println(direction > 0 ? "this is the last record" : "this is the first record");
            return;
        }
        at = reached;
        show();
    }

    private void moveFrom(int start, int direction) {
        int next = next(start, direction);
        if (next >= 0) {
            at = next;
            show();
        }
    }

    /** Index of the next record of a selected entity, -1 when there is none. */
    private int next(int from, int direction) {
        for (int i = from + direction; i >= 0 && i < entries.size(); i += direction) {
            if (chosen.test(entries.get(i).entity())) {
                return i;
            }
        }
        return -1;
    }

    private void jump(String where) {
        long sequence;
        try {
            sequence = LogPosition.sequence(entries, where);
        } catch (IllegalArgumentException e) {
            out.println(e.getMessage());
            return;
        }
        for (int i = entries.size() - 1; i >= 0; i--) {
            if (entries.get(i).sequence() <= sequence) {
                at = i;
                show();
                return;
            }
        }
        out.println("the log begins after that");
    }

    private void search(String text, int direction) {
        for (int i = next(at, direction); i >= 0; i = next(i, direction)) {
            if (EventText.line(entries.get(i)).contains(text)) {
                at = i;
                show();
                return;
            }
        }
        out.println("no record " + (direction > 0 ? "behind" : "before") + " this one contains \"" + text + "\"");
    }

    private void show() {
        out.println(EventText.line(entries.get(at)));
        showState();
    }

    private Map<String, Map<String, Object>> states() {
        return Replay.stateAt(entries, at < 0 ? 0 : entries.get(at).sequence());
    }

    private void showState() {
        Map<String, Map<String, Object>> states = states();
        String own = at < 0 ? "" : entries.get(at).entity();
        states.forEach((name, state) -> {
            if (pattern.isEmpty() ? name.equals(own) : chosen.test(name)) {
                out.println("        " + name + ": " + text(state));
            }
        });
    }

    private void list() {
        var names = new TreeSet<String>();
        entries.forEach(entry -> names.add(entry.entity()));
        Map<String, Map<String, Object>> states = states();
        names.forEach(name -> out.println(
                "        " + name + ": " + (states.containsKey(name) ? text(states.get(name)) : "not there yet")));
    }

    private static String text(Map<String, Object> state) {
        StringBuilder text = new StringBuilder(String.valueOf(state.get("state")));
        state.forEach((key, value) -> {
            if (!key.equals("state") && value != null) {
                text.append(", ").append(key).append(' ').append(value instanceof String s ? s : Json.write(value));
            }
        });
        return text.toString();
    }
}
