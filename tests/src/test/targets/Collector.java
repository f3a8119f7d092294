import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/** Java with explicit garbage collections, a pool, hot loops for the compiler, direct memory; see check.h for the rules. */
public final class Collector {
    private static Path progress;

    private static synchronized void report(String line) {
        try {
            Files.writeString(progress, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void fail(String why) {
        report("FAIL " + why);
        Runtime.getRuntime().halt(99);
    }

    private static double pi(int terms) {
        double sum = 0;
        for (int k = 0; k < terms; k++) sum += (k % 2 == 0 ? 4.0 : -4.0) / (2 * k + 1);
        return sum;
    }

    private record Node(long value, Node next) {}

    public static void main(String[] arguments) throws Exception {
        progress = Path.of(arguments[0]);
        Path stop = Path.of(arguments[0] + ".stop");
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> fail(thread + ": " + e));
        ExecutorService pool = Executors.newFixedThreadPool(4);
        Map<Long, String> table = new ConcurrentHashMap<>();
        AtomicLong background = new AtomicLong();
        Thread daemon = new Thread(() -> {
            while (true) {
                background.incrementAndGet();
                try {
                    Thread.sleep(1);
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        daemon.setDaemon(true);
        daemon.start();
        ByteBuffer direct = ByteBuffer.allocateDirect(1 << 20);
        for (int i = 0; i < 1 << 17; i++) direct.putLong(i * 8, i * 31L);
        double expected = pi(100_000);
        Node list = null;
        long last = System.nanoTime();
        for (long n = 1; !Files.exists(stop); n++) {
            List<Future<Long>> results = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                long seed = n * 4 + i;
                results.add(pool.submit(() -> {
                    long x = seed;
                    for (int k = 0; k < 1000; k++) x = x * 6364136223846793005L + 1442695040888963407L;
                    table.put(seed % 1000, Long.toString(seed % 1000));
                    return x;
                }));
            }
            for (int i = 0; i < 4; i++) {
                long x = n * 4 + i;
                for (int k = 0; k < 1000; k++) x = x * 6364136223846793005L + 1442695040888963407L;
                if (results.get(i).get() != x) fail("a task gave something else");
            }
            list = new Node(n, n % 1000 == 0 ? null : list);
            long value = n;
            for (Node node = list; node != null; node = node.next()) if (node.value() != value--) fail("the list changed");
            byte[][] garbage = new byte[64][];
            for (int i = 0; i < garbage.length; i++) Arrays.fill(garbage[i] = new byte[16 * 1024], (byte) (n + i));
            if (n % 25 == 0) System.gc();
            for (int i = 0; i < garbage.length; i++) if (garbage[i][12345] != (byte) (n + i)) fail("the collector lost something");
            int at = (int) (n * 7919 % (1 << 17));
            if (direct.getLong(at * 8) != at * 31L) fail("direct memory changed");
            if (pi(100_000) != expected) fail("floating point changed");
            table.forEach((k, v) -> {
                if (!v.equals(Long.toString(k))) fail("the table changed");
            });
            long now = System.nanoTime();
            if (now < last) fail("time went back");
            last = now;
            report("tick " + n);
            Thread.sleep(3);
        }
        long before = background.get();
        for (int i = 0; background.get() == before; i++) {
            if (i > 1000) fail("the background thread stands still");
            Thread.sleep(5);
        }
        pool.shutdown();
        report("done");
        System.exit(42);
    }
}
