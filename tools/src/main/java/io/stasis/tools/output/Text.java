package io.stasis.tools.output;

import java.time.Duration;
import java.util.List;
import java.util.Locale;

/** Numbers and tables as people read them. */
public final class Text {
    private Text() {}

    /** Bytes with a decimal unit: "812 B", "18.3 MB". */
    public static String bytes(long bytes) {
        String[] units = {"B", "kB", "MB", "GB", "TB", "PB"};
        double value = bytes;
        int unit = 0;
        while (value >= 999.95 && unit < units.length - 1) {
            value /= 1000;
            unit++;
        }
        return unit == 0 ? bytes + " B" : decimal(value) + " " + units[unit];
    }

    /** A time span given in nanoseconds: "0.8 ms", "4.1 ms", "1.25 s", "3 min 20 s". */
    public static String time(long nanos) {
        if (nanos < 1_000_000_000L) {
            return decimal(nanos / 1e6) + " ms";
        }
        if (nanos < 60_000_000_000L) {
            return String.format(Locale.ROOT, "%.2f s", nanos / 1e9);
        }
        return age(Duration.ofNanos(nanos));
    }

    /** A long time span by its two largest units: "3 min 20 s", "2 d 4 h". */
    public static String age(Duration age) {
        if (age.toDays() > 0) {
            return age.toDays() + " d " + age.toHoursPart() + " h";
        }
        if (age.toHours() > 0) {
            return age.toHours() + " h " + age.toMinutesPart() + " min";
        }
        if (age.toMinutes() > 0) {
            return age.toMinutes() + " min " + age.toSecondsPart() + " s";
        }
        return age.toSeconds() + " s";
    }

    /** "1 process", "4 processes". */
    public static String count(long number, String one, String many) {
        return number + " " + (number == 1 ? one : many);
    }

    /** Rows under headings, columns as wide as their widest cell. */
    public static String table(List<String> headings, List<List<String>> rows) {
        int[] widths = new int[headings.size()];
        for (int column = 0; column < widths.length; column++) {
            widths[column] = headings.get(column).length();
            for (List<String> row : rows) {
                widths[column] = Math.max(widths[column], row.get(column).length());
            }
        }
        StringBuilder out = new StringBuilder();
        line(headings, widths, out);
        rows.forEach(row -> line(row, widths, out));
        return out.toString();
    }

    private static void line(List<String> cells, int[] widths, StringBuilder out) {
        StringBuilder line = new StringBuilder();
        for (int column = 0; column < widths.length; column++) {
            String cell = cells.get(column);
            line.append(cell).repeat(" ", widths[column] - cell.length() + 2);
        }
        out.append(line.toString().stripTrailing()).append('\n');
    }

    private static String decimal(double value) {
        // String.format is slow at start-up, and one decimal place is easily made.
        long tenths = Math.round(value * 10);
        return tenths / 10 + "." + tenths % 10;
    }
}
