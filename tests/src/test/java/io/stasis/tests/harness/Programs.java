package io.stasis.tests.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Builds the programs under src/test into target/programs, each once, with the compilers of the system. A compiler that
 * is missing fails the test, naming the Debian package.
 */
public final class Programs {
    private static final Path SOURCES = Path.of(System.getProperty("stasis.root", ".."))
            .resolve("tests/src/test")
            .toAbsolutePath()
            .normalize();
    private static final Path BUILT = SOURCES.resolve("../../target/programs").normalize();

    private Programs() {}

    /** Dynamically linked against glibc. */
    public static Program c(String name) {
        return c(name, name, "libc6-dev", "gcc", "-pthread");
    }

    public static Program staticGlibc(String name) {
        return c(name, name + "-static", "libc6-dev", "gcc", "-static", "-pthread");
    }

    public static Program staticMusl(String name) {
        return c(name, name + "-musl", "musl-tools", "musl-gcc", "-static", "-pthread");
    }

    public static Program bits32(String name) {
        return c(name, name + "-32", "gcc-multilib", "gcc", "-m32", "-static", "-pthread");
    }

    /**
     * Whether this kernel can execute the program at all. Without arguments every program tells its usage and ends; what
     * the kernel does not know is tried as a shell script, which does not.
     */
    public static boolean runs(Program program) {
        try {
            Process process = new ProcessBuilder(program.command())
                    .redirectErrorStream(true)
                    .start();
            return new String(process.getInputStream().readAllBytes()).contains("usage:");
        } catch (IOException e) {
            return false;
        }
    }

    private static Program c(String source, String target, String debianPackage, String... compiler) {
        Path file = SOURCES.resolve("c/" + source + ".c");
        Path program = BUILT.resolve(target);
        var command = new ArrayList<>(List.of(compiler));
        command.addAll(List.of("-O2", "-Wall", "-Wextra", "-o", program + ".new", file.toString(), "-lm"));
        build(program, List.of(file, SOURCES.resolve("c/check.h")), command, debianPackage);
        return new Program(target, List.of(program.toString()));
    }

    public static Program go(String name) {
        Path file = SOURCES.resolve("go/" + name + ".go");
        Path program = BUILT.resolve(name);
        build(program, List.of(file), List.of("go", "build", "-o", program + ".new", file.toString()), "golang-go");
        return new Program(name, List.of(program.toString()));
    }

    /** The interpreter of the distribution, not one that a developer put before it in the path. */
    public static Program python(String name) {
        return new Program(
                name,
                List.of(
                        "/usr/bin/python3",
                        SOURCES.resolve("python/" + name + ".py").toString()));
    }

    public static Program bash(String name) {
        return new Program(
                name,
                List.of("/bin/bash", SOURCES.resolve("shell/" + name + ".sh").toString()));
    }

    public static Program perl(String name) {
        return new Program(
                name,
                List.of("/usr/bin/perl", SOURCES.resolve("perl/" + name + ".pl").toString()));
    }

    /** Ranks of MPICH with its launcher, which is the root of the tree. */
    public static Program mpich(String name, int ranks) {
        Program rank = c(name, name + "-mpich", "libmpich-dev", "mpicc.mpich");
        return new Program(
                rank.name(),
                List.of(
                        "/usr/bin/mpirun.mpich",
                        "-np",
                        Integer.toString(ranks),
                        rank.command().getFirst()));
    }

    /** The same of Open MPI, which also holds pseudo-terminals and files under /tmp. */
    public static Program openMpi(String name, int ranks) {
        Program rank = c(name, name + "-openmpi", "libopenmpi-dev", "mpicc.openmpi");
        return new Program(
                rank.name(),
                List.of(
                        "/usr/bin/mpirun.openmpi",
                        "--allow-run-as-root",
                        "--oversubscribe",
                        "-np",
                        Integer.toString(ranks),
                        rank.command().getFirst()));
    }

    public static Program node(String name) {
        return new Program(
                name,
                List.of("/usr/bin/node", SOURCES.resolve("node/" + name + ".js").toString()));
    }

    /** The JDK that runs the tests. */
    public static Program java(String name) {
        return java(name, Path.of(System.getProperty("java.home")));
    }

    /** The oldest JDK of 17 or later that is installed beside the one that runs the tests. */
    public static Program olderJava(String name) {
        try (Stream<Path> homes = Files.list(Path.of("/usr/lib/jvm"))) {
            return java(
                    name,
                    homes.filter(home -> Files.isExecutable(home.resolve("bin/java")) && !Files.isSymbolicLink(home))
                            .filter(home -> versionOf(home) >= 17 && versionOf(home) < 25)
                            .min(Comparator.comparing(Programs::versionOf))
                            .orElseThrow(
                                    () -> new AssertionError(
                                            "no JDK from 17 to 24 under /usr/lib/jvm: install openjdk-17-jre-headless or openjdk-21-jre-headless")));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static int versionOf(Path home) {
        try (Stream<String> lines = Files.lines(home.resolve("release"))) {
            return lines.filter(line -> line.startsWith("JAVA_VERSION="))
                    .map(line -> Integer.parseInt(line.replaceAll("^JAVA_VERSION=\"(\\d+).*", "$1")))
                    .findFirst()
                    .orElse(0);
        } catch (IOException e) {
            return 0;
        }
    }

    private static Program java(String name, Path home) {
        Path file = SOURCES.resolve("targets/" + name + ".java");
        Path program = BUILT.resolve(name);
        String javac = Path.of(System.getProperty("java.home"), "bin/javac").toString();
        build(
                program,
                List.of(file),
                List.of(javac, "--release", "17", "-d", program + ".new", file.toString()),
                "a JDK");
        return new Program(
                name + "-" + versionOf(home),
                List.of(home.resolve("bin/java").toString(), "-Xmx128m", "-cp", program.toString(), name));
    }

    private static synchronized void build(
            Path program, List<Path> sources, List<String> command, String debianPackage) {
        try {
            long newest = 0;
            for (Path source : sources) {
                newest = Math.max(newest, Files.getLastModifiedTime(source).toMillis());
            }
            if (Files.exists(program) && Files.getLastModifiedTime(program).toMillis() > newest) {
                return;
            }
            Files.createDirectories(BUILT);
            Path log = BUILT.resolve(program.getFileName() + ".log");
            var builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
            builder.environment().put("GO111MODULE", "off");
            builder.environment().put("GOCACHE", BUILT.resolve("go-cache").toString());
            builder.environment().put("HOME", BUILT.toString());
            Process process;
            try {
                process = builder.start();
            } catch (IOException e) {
                throw new AssertionError(command.getFirst() + " is missing: install " + debianPackage, e);
            }
            if (!process.waitFor(5, TimeUnit.MINUTES) || process.exitValue() != 0) {
                process.destroyForcibly();
                throw new AssertionError("cannot build " + program + " (is " + debianPackage + " installed?):\n"
                        + String.join(" ", command) + "\n" + Files.readString(log));
            }
            Path fresh = Path.of(program + ".new");
            if (Files.isDirectory(program)) {
                DirectoryTree.delete(program);
            }
            Files.move(fresh, program, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    static Path sources() {
        return SOURCES;
    }

    static Path built() {
        return BUILT;
    }
}
