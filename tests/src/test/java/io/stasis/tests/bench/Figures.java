package io.stasis.tests.bench;

import java.util.Arrays;
import java.util.List;

/**
 * Repeated measurements of one thing.
 *
 * @param what for people
 * @param unit such as "ms" or "MiB"
 * @param median middle of the sorted values
 * @param least smallest value
 * @param most largest value
 * @param count number of values
 */
public record Figures(String what, String unit, double median, double least, double most, int count) {
    /** @throws IllegalArgumentException when there are no values */
    static Figures of(String what, String unit, List<Double> values) {
        if (values.isEmpty()) {
            throw new IllegalArgumentException("nothing was measured of " + what);
        }
        double[] sorted = values.stream().mapToDouble(Double::doubleValue).toArray();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        double median = sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
        return new Figures(what, unit, median, sorted[0], sorted[sorted.length - 1], sorted.length);
    }

    String row(String workload) {
        return String.format(
                "%-28s %-34s %10.2f %10.2f %10.2f %-4s %d", workload, what, median, least, most, unit, count);
    }
}
