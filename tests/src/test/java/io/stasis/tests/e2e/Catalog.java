package io.stasis.tests.e2e;

import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Programs;
import java.util.stream.Stream;

/** The programs that go through the whole cycle, and those that any user can run. */
final class Catalog {
    private Catalog() {}

    /** Of all languages and libraries. */
    static Stream<Program> languages() {
        return Stream.of(
                Programs.staticGlibc("counter"),
                Programs.staticMusl("counter"),
                Programs.c("counter"),
                Programs.c("threads"),
                Programs.staticGlibc("threads"),
                Programs.staticMusl("threads"),
                Programs.python("pipeline"),
                Programs.bash("job"),
                Programs.perl("counter"),
                Programs.go("goroutines"),
                Programs.java("Collector"),
                Programs.olderJava("Collector"));
    }

    /** One for each kind of thing that the kernel keeps for a process, and what only root can take along. */
    static Stream<Program> resources() {
        return Stream.of(unprivileged(), withChosenIds(), busy(), Stream.of(fullConnection(), Programs.c("seccomp")))
                .flatMap(kinds -> kinds);
    }

    /** A TCP connection with more in flight than its receiver has room for. */
    static Program fullConnection() {
        return Programs.c("inetsockets").with("full");
    }

    /** Any user can checkpoint them; a restart needs the privilege to choose ids. */
    static Stream<Program> withChosenIds() {
        return Stream.of(Programs.c("segments"));
    }

    /** What any user can restart. */
    static Stream<Program> ordinary() {
        return Stream.concat(
                Stream.of(
                        Programs.c("threads"),
                        Programs.python("pipeline"),
                        Programs.bash("job"),
                        Programs.java("Collector")),
                unprivileged());
    }

    private static Stream<Program> unprivileged() {
        return Stream.of(
                Programs.c("memory"),
                Programs.c("process"),
                Programs.c("signals"),
                Programs.c("credentials"),
                Programs.c("sessions"),
                Programs.c("zombies"),
                Programs.c("descriptors"),
                Programs.c("nameless"),
                Programs.c("locks"),
                Programs.c("ipc"),
                Programs.c("mqueue"),
                Programs.c("pipes"),
                Programs.c("events"),
                Programs.c("waiting"),
                Programs.c("watches"),
                Programs.c("unixsockets"),
                Programs.c("inetsockets"),
                Programs.c("threadstate"),
                Programs.c("modes"),
                Programs.c("mappings"));
    }

    /** Many of a kind, or never at rest. */
    private static Stream<Program> busy() {
        return Stream.of(
                Programs.c("forker"),
                Programs.c("storm"),
                Programs.c("threads").with("250"),
                Programs.c("ring").with("50"));
    }

    /** Real servers with clients of theirs, and parallel programs under their launchers. */
    static Stream<Program> servers() {
        return Stream.of(
                Programs.python("redis"),
                Programs.python("nginx"),
                Programs.python("asyncpair"),
                Programs.node("nodepair"),
                Programs.python("multiplexer"),
                Programs.mpich("mpiring", 4),
                Programs.openMpi("mpiring", 4));
    }

    /** What any user can run. */
    static Stream<Program> all() {
        return Stream.of(languages(), unprivileged(), withChosenIds(), busy()).flatMap(kinds -> kinds);
    }
}
