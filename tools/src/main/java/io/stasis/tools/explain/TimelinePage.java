package io.stasis.tools.explain;

import io.stasis.actors.replay.Explanation;
import io.stasis.actors.replay.Operation;
import io.stasis.actors.replay.Operation.PhaseSpan;
import io.stasis.actors.replay.Operation.Step;
import io.stasis.engine.Outcome;
import io.stasis.tools.output.Text;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Checkpoints and restarts as one page that needs nothing else: no network, and no script but for zooming. Bars are
 * elements with places in per cent, so that the page prints as it is shown.
 */
public final class TimelinePage {
    /** More threads of a process than these are folded. */
    private static final int FOLD = 12;

    private final StringBuilder out = new StringBuilder();

    private TimelinePage() {}

    /** @param told operations of one log with their explanations, at least one */
    public static String of(List<Explanation> told) {
        TimelinePage page = new TimelinePage();
        page.whole(told);
        return page.out.toString();
    }

    private void whole(List<Explanation> told) {
        String title = told.getFirst().operation().computation() + ": "
                + (told.size() == 1
                        ? title(told.getFirst().operation())
                        : Text.count(told.size(), "operation", "operations"));
        out.append("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
                .append("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
                .append("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ")
                .append("style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n")
                .append("<title>")
                .append(escape(title))
                .append("</title>\n<style>\n")
                .append(resource("timeline.css"))
                .append("</style>\n</head>\n<body>\n<h1>")
                .append(escape(title))
                .append("</h1>\n");
        if (told.size() > 1) {
            out.append("<nav>");
            for (int i = 0; i < told.size(); i++) {
                out.append("<a href=\"#op")
                        .append(i)
                        .append("\">")
                        .append(escape(title(told.get(i).operation())))
                        .append("</a>");
            }
            out.append("</nav>\n");
        }
        for (int i = 0; i < told.size(); i++) {
            section(told.get(i), i, told.size() > 1);
        }
        out.append("<script>\n").append(resource("timeline.js")).append("</script>\n</body>\n</html>\n");
    }

    private static String title(Operation operation) {
        return operation.kind() + " of generation " + operation.generation();
    }

    private void section(Explanation told, int number, boolean several) {
        Operation operation = told.operation();
        out.append("<section id=\"op").append(number).append("\">\n");
        if (several) {
            out.append("<h2>").append(escape(title(operation))).append("</h2>\n");
        }
        boolean failed = operation.end() instanceof Operation.End.Aborted;
        out.append("<p class=\"")
                .append(failed ? "verdict failed" : "verdict")
                .append("\">")
                .append(escape(told.verdict()))
                .append("</p>\n<p class=\"quiet\">")
                .append(escape(java.time.Instant.ofEpochMilli(operation.wallNanos() / 1_000_000)
                        + (operation.cause() == null ? "" : ", " + operation.cause())))
                .append("</p>\n");
        Timeline timeline = Timeline.of(operation);
        tiles(operation, timeline);
        if (!operation.phases().isEmpty()) {
            timeline(timeline);
        }
        out.append("<div class=\"tables\">\n");
        phases(operation);
        connections(operation);
        out.append("</div>\n</section>\n");
    }

    private void tiles(Operation operation, Timeline timeline) {
        long processes = timeline.rows().stream().filter(row -> !row.isThread()).count();
        long threads = timeline.rows().size() - processes;
        long inFlight = operation.connections().stream()
                .mapToLong(Outcome.Connection::bytes)
                .sum();
        out.append("<ul class=\"tiles\">\n");
        if (operation.pauseNanos() > 0) {
            tile(Text.time(operation.pauseNanos()), "stood still", "pause");
        }
        tile(Text.time(operation.nanos()), "in all", "total");
        tile(Long.toString(processes), processes == 1 ? "process" : "processes", "processes");
        if (threads > 0) {
            tile(Long.toString(threads), threads == 1 ? "thread" : "threads", "threads");
        }
        tile(Text.bytes(operation.bytes()), operation.restart() ? "of memory made again" : "written", "bytes");
        tile(
                Integer.toString(operation.connections().size()),
                "connections with " + Text.bytes(inFlight) + " in flight",
                "connections");
        out.append("</ul>\n");
    }

    private void tile(String value, String what, String name) {
        out.append("<li data-what=\"")
                .append(name)
                .append("\"><b>")
                .append(escape(value))
                .append("</b><span>")
                .append(escape(what))
                .append("</span></li>\n");
    }

    private void timeline(Timeline timeline) {
        out.append("<div class=\"timeline\">\n<div class=\"tools\"><span>")
                .append("<button class=\"out\" type=\"button\" aria-label=\"smaller\">−</button> ")
                .append("<button class=\"in\" type=\"button\" aria-label=\"larger\">+</button> ")
                .append("<button class=\"all\" type=\"button\">all</button></span><span class=\"legend\">")
                .append("<span><i class=\"path\"></i>critical path</span>");
        if (timeline.rows().stream().anyMatch(Timeline.Row::isThread)) {
            out.append("<span><i class=\"stopping\"></i>thread is asked to stop</span>")
                    .append("<span><i class=\"still\"></i>thread stands still</span>");
        }
        out.append(
                        "</span></div>\n<div class=\"scroll\" tabindex=\"0\"><div class=\"chart\" style=\"--zoom:1\" data-nanos=\"")
                .append(timeline.nanos())
                .append("\">\n")
                .append(
                        "<div class=\"row axis\"><div class=\"name\">time</div><div class=\"track\"><span style=\"left:0\">0</span>")
                .append("</div></div>\n");
        row("phases", "all", timeline.phases(), timeline.nanos());
        int i = 0;
        while (i < timeline.rows().size()) {
            Timeline.Row process = timeline.rows().get(i++);
            row("process", process.name(), process.spans(), timeline.nanos());
            List<Timeline.Row> threads = new ArrayList<>();
            while (i < timeline.rows().size() && timeline.rows().get(i).isThread()) {
                threads.add(timeline.rows().get(i++));
            }
            if (threads.size() > FOLD) {
                out.append("<details><summary class=\"row thread\"><div class=\"name\">")
                        .append(threads.size())
                        .append(" threads</div></summary>\n");
            }
            threads.forEach(thread -> row("thread", thread.name(), thread.spans(), timeline.nanos()));
            if (threads.size() > FOLD) {
                out.append("</details>\n");
            }
        }
        out.append(
                "</div></div>\n<p class=\"word\">Point at a bar for its story. Zoom: the buttons, Ctrl and the wheel, or + and −.</p>\n</div>\n");
    }

    private void row(String kind, String name, List<Timeline.Span> spans, long nanos) {
        out.append("<div class=\"row ")
                .append(kind)
                .append("\"><div class=\"name\" title=\"")
                .append(escape(name))
                .append("\">")
                .append(escape(kind.equals("phases") ? "phases" : name))
                .append("</div><div class=\"track\">");
        for (Timeline.Span span : spans) {
            out.append(String.format(
                    Locale.ROOT,
                    "<div class=\"bar %s%s%s\" style=\"left:%.4f%%;width:%.4f%%\" title=\"%s\">%s</div>",
                    span.kind(),
                    span.critical() ? " critical" : "",
                    span.broken() ? " broken" : "",
                    100.0 * span.startNanos() / nanos,
                    100.0 * (span.endNanos() - span.startNanos()) / nanos,
                    escape(span.text()),
                    kind.equals("thread") ? "" : "<span>" + escape(span.label()) + "</span>"));
        }
        out.append("</div></div>\n");
    }

    private void phases(Operation operation) {
        if (operation.phases().isEmpty()) {
            return;
        }
        List<Step> critical = operation.criticalPath();
        out.append(
                        "<div class=\"wide\"><h3>Phases</h3><table class=\"phases\"><tr><th>phase</th><th class=\"n\">time</th>")
                .append("<th class=\"n\">share</th><th>critical path</th></tr>\n");
        for (PhaseSpan span : operation.phases()) {
            String path = String.join(
                    " → ",
                    critical.stream()
                            .filter(step -> step.phase() == span.phase())
                            .map(step -> Timeline.shortName(step.entity()) + " " + Text.time(step.nanos()))
                            .toList());
            out.append("<tr><td>")
                    .append(span.phase().name().toLowerCase(Locale.ROOT))
                    .append(span.finished() ? "" : " <span class=\"failed\">not finished</span>")
                    .append("</td><td class=\"n\">")
                    .append(Text.time(span.nanos()))
                    .append("</td><td class=\"n\">")
                    .append(Math.round(100.0 * span.nanos() / Math.max(1, operation.nanos())))
                    .append(" %</td><td>")
                    .append(escape(path))
                    .append("</td></tr>\n");
        }
        long outside = operation.nanos()
                - operation.phases().stream().mapToLong(PhaseSpan::nanos).sum();
        out.append("<tr><td>no phase</td><td class=\"n\">")
                .append(Text.time(outside))
                .append("</td><td class=\"n\">")
                .append(Math.round(100.0 * outside / Math.max(1, operation.nanos())))
                .append(" %</td><td class=\"quiet\">before the first, and to disk</td></tr>\n</table></div>\n");
    }

    private void connections(Operation operation) {
        if (operation.connections().isEmpty()) {
            return;
        }
        out.append("<div class=\"wide\"><h3>")
                .append(operation.restart() ? "Connections refilled" : "Connections drained")
                .append("</h3><table class=\"connections\"><tr><th>connection</th><th>kind</th>")
                .append("<th class=\"n\">in flight</th><th>held by</th></tr>\n");
        for (Outcome.Connection connection : operation.connections()) {
            out.append("<tr><td class=\"id\">")
                    .append(escape(connection.id()))
                    .append("</td><td>")
                    .append(escape(connection.kind()))
                    .append("</td><td class=\"n\">")
                    .append(Text.bytes(connection.bytes()))
                    .append("</td><td>")
                    .append(escape(String.join(
                            ", ",
                            connection.holders().stream().map(String::valueOf).toList())))
                    .append("</td></tr>\n");
        }
        out.append("</table></div>\n");
    }

    private static String escape(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }

    private static String resource(String name) {
        try (InputStream in = TimelinePage.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
