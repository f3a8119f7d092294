package io.stasis.tools.output;

import io.stasis.client.StasisClient.Progress;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * One line on a terminal that tells what the agent is at, once it takes longer than a second. Nothing is written when
 * standard error is no terminal.
 */
public final class ProgressLine implements Consumer<Progress>, AutoCloseable {
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final boolean terminal = isTerminal();
    private final long started = System.nanoTime();
    private int width;

    @Override
    public void accept(Progress progress) {
        long elapsed = System.nanoTime() - started;
        if (!terminal || elapsed < PATIENCE_NANOS) {
            return;
        }
        String line = progress.phase()
                + (progress.processes() > 0 ? ", " + Text.count(progress.processes(), "process", "processes") : "")
                + (progress.bytes() > 0 ? ", " + Text.bytes(progress.bytes()) : "")
                + ", " + Text.time(elapsed);
        System.err.print("\r" + line + " ".repeat(Math.max(0, width - line.length())));
        System.err.flush();
        width = line.length();
    }

    /** Clears the line. */
    @Override
    public void close() {
        if (width > 0) {
            System.err.print("\r" + " ".repeat(width) + "\r");
            System.err.flush();
            width = 0;
        }
    }

    private static boolean isTerminal() {
        try {
            String target = java.nio.file.Files.readSymbolicLink(java.nio.file.Path.of("/proc/self/fd/2"))
                    .toString();
            return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty");
        } catch (java.io.IOException e) {
            return false;
        }
    }
}
