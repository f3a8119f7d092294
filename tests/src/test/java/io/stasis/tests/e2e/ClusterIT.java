package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Await;
import io.stasis.tests.harness.DirectoryTree;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Two agents, each in a network of its own, joined by a cable, are two hosts of one cluster. */
class ClusterIT {
    private static final String NETWORK_A = "st-a-" + ProcessHandle.current().pid();
    private static final String NETWORK_B = "st-b-" + ProcessHandle.current().pid();
    private static final String ADDRESS_A = "10.213.77.1";
    private static final String ADDRESS_B = "10.213.77.2";

    /** There before the first command and until after the last one. */
    @Order(1)
    @RegisterExtension
    static final Networks networks = new Networks();

    @Order(2)
    @RegisterExtension
    static final Stasis hostA = new Stasis(Account.ROOT)
            .within("nsenter", "--net=/run/netns/" + NETWORK_A, "--")
            .withEnvironment("STASIS_HOST", "host-a");

    @Order(3)
    @RegisterExtension
    static final Stasis hostB = new Stasis(Account.ROOT)
            .within("nsenter", "--net=/run/netns/" + NETWORK_B, "--")
            .withEnvironment("STASIS_HOST", "host-b");

    @BeforeAll
    static void theAgentsJoin() throws Exception {
        Path port = hostA.work().resolve("port");
        var coordinator =
                hostA.start("coordinator", "--host", ADDRESS_A, "--port", "0", "--port-file", port.toString());
        Await.until(
                "the coordinator tells its port",
                Await.PATIENCE,
                () -> Files.exists(port) && port.toFile().length() > 0,
                () -> "it is " + (coordinator.isAlive() ? "alive" : "dead: " + coordinator.exitValue())
                        + hostA.story(""));
        hostB.start(
                "agent",
                "--foreground",
                "--join",
                ADDRESS_A + ":" + Files.readString(port).strip());
        Await.until(
                "both hosts are members",
                Await.PATIENCE,
                () -> hosts(hostA).size() == 2 && hosts(hostB).size() == 2,
                () -> hostA.story("a") + hostB.story("b"));
    }

    private static TreeSet<String> hosts(Stasis stasis) {
        var hosts = new TreeSet<String>();
        var result = stasis.run("ps", "--json");
        if (result.exit() == 0) {
            for (JsonNode host : result.json().path("hosts")) {
                hosts.add(
                        host.isTextual()
                                ? host.asText()
                                : host.path("host").asText(host.path("name").asText()));
            }
        }
        return hosts;
    }

    @Test
    void bothHostsShowOnEither() {
        assertThat(hosts(hostA)).containsExactly("host-a", "host-b");
        assertThat(hosts(hostB)).containsExactly("host-a", "host-b");
        assertThat(hostA.run("ps").expectSuccess().out()).contains("host-a", "host-b");
    }

    @Test
    void oneCheckpointCommitsOneGenerationWithATreeFromEach() throws IOException {
        Path image = Files.createTempDirectory("st-image-").resolve("image");
        try {
            var a = hostA.launch(Programs.c("counter"), "pair", image);
            var b = hostB.launch(Programs.c("threads"), "pair", image);
            for (Stasis from : List.of(hostA, hostB)) {
                JsonNode generations = from.run("checkpoint", "pair", "--json")
                        .expectSuccess()
                        .json()
                        .path("generations");
                assertThat(generations).hasSize(1);
                a.awaitMoreTicks();
                b.awaitMoreTicks();
                JsonNode manifest = new ObjectMapper()
                        .readTree(image.resolve("latest/manifest.json").toFile());
                var roots = new TreeSet<Long>();
                var names = new TreeSet<String>();
                for (JsonNode host : manifest.path("hosts")) {
                    names.add(host.path("name").asText());
                    host.path("processes")
                            .forEach(process -> roots.add(process.path("pid").asLong()));
                }
                assertThat(names).containsExactly("host-a", "host-b");
                assertThat(roots).containsExactlyInAnyOrder(a.pid(), b.pid());
                from.run("verify", image.toString()).expectSuccess();
            }
            assertThat(image.resolve("latest").toRealPath().getFileName()).hasToString("0002");
            a.finish();
            b.finish();
        } finally {
            DirectoryTree.delete(image.getParent());
        }
    }

    /** Two network namespaces with a cable between them. */
    static final class Networks implements BeforeAllCallback, AfterAllCallback {
        @Override
        public void beforeAll(ExtensionContext context) {
            ip("netns", "add", NETWORK_A);
            ip("netns", "add", NETWORK_B);
            ip("link", "add", "cable", "netns", NETWORK_A, "type", "veth", "peer", "name", "cable", "netns", NETWORK_B);
            plug(NETWORK_A, ADDRESS_A);
            plug(NETWORK_B, ADDRESS_B);
        }

        private static void plug(String network, String address) {
            ip("-n", network, "address", "add", address + "/24", "dev", "cable");
            ip("-n", network, "link", "set", "cable", "up");
            ip("-n", network, "link", "set", "lo", "up");
        }

        @Override
        public void afterAll(ExtensionContext context) {
            for (String network : List.of(NETWORK_A, NETWORK_B)) {
                if (Files.exists(Path.of("/run/netns/" + network))) {
                    ip("netns", "delete", network);
                }
            }
        }

        private static void ip(String... arguments) {
            var command = new ArrayList<>(List.of("ip"));
            command.addAll(List.of(arguments));
            try {
                var process =
                        new ProcessBuilder(command).redirectErrorStream(true).start();
                String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                if (!process.waitFor(30, TimeUnit.SECONDS) || process.exitValue() != 0) {
                    throw new AssertionError(String.join(" ", command) + ": " + output);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError(e);
            }
        }
    }
}
