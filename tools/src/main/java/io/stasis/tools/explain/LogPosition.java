package io.stasis.tools.explain;

import io.stasis.image.log.EventLog;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A place in a log, as users give it: the number of a record, or a time. */
public final class LogPosition {
    private LogPosition() {}

    /**
     * Number of the last record that counts.
     *
     * @param text a number; a time as {@code stasis log} prints it, in the local time zone; such a time without its date,
     *     then of the day of the log's last record; or an instant of ISO 8601 such as "2026-12-01T14:52:16.8Z"
     * @throws IllegalArgumentException with a sentence for the user
     */
    public static long sequence(List<EventLog.Entry> entries, String text) {
        if (text.chars().allMatch(Character::isDigit) && !text.isEmpty()) {
            return Long.parseLong(text);
        }
        if (entries.isEmpty()) {
            return 0;
        }
        Instant time = time(text, wall(entries.getLast()));
        return entries.stream()
                .filter(entry -> !wall(entry).isAfter(time))
                .mapToLong(EventLog.Entry::sequence)
                .max()
                .orElse(0);
    }

    private static Instant wall(EventLog.Entry entry) {
        long second = TimeUnit.SECONDS.toNanos(1);
        return Instant.ofEpochSecond(entry.wallNanos() / second, entry.wallNanos() % second);
    }

    private static Instant time(String text, Instant last) {
        ZoneId zone = ZoneId.systemDefault();
        try {
            if (text.endsWith("Z")) {
                return Instant.parse(text);
            }
            if (text.contains("-")) {
                return LocalDateTime.parse(text.replace(' ', 'T')).atZone(zone).toInstant();
            }
            LocalDate day = LocalDate.ofInstant(last, zone);
            return LocalTime.parse(text).atDate(day).atZone(zone).toInstant();
        } catch (DateTimeException e) {
            throw new IllegalArgumentException(
                    "\"" + text
                            + "\" is neither the number of a record nor a time such as \"2026-12-01 15:52:16.9\" or \"15:52:16\"");
        }
    }
}
