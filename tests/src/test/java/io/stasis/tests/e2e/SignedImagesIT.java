package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Whoever requires a signature runs nothing that was not signed with that key. */
class SignedImagesIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @TempDir
    Path keys;

    @Test
    void onlyAnImageThatWasSignedWithTheRequiredKeyIsRestarted() throws IOException {
        String key = keys.resolve("mine.key").toString();
        String other = keys.resolve("other.key").toString();
        stasis.run("keygen", key).expectSuccess();
        stasis.run("keygen", other).expectSuccess();
        stasis.run("keygen", key).expectRefusal(1, "already");

        var target = stasis.launch(Programs.c("counter"));
        String image = target.image().toString();
        target.checkpoint();
        stasis.run("verify", image, "--require-signature", key + ".pub").expectRefusal(5, "is not signed");
        stasis.run("checkpoint", target.name(), "--sign", key, "--kill").expectSuccess();
        target.awaitEnd();
        assertThat(stasis.run("verify", image).expectSuccess().out()).contains("signed with key");
        stasis.run("verify", image, "--generation", "2", "--require-signature", key + ".pub")
                .expectSuccess();

        for (String command : new String[] {"verify", "restart"}) {
            stasis.run(command, image, "--generation", "2", "--require-signature", other + ".pub")
                    .expectRefusal(5, "is signed with key");
            stasis.run(command, image, "--generation", "1", "--require-signature", key + ".pub")
                    .expectRefusal(5, "is not signed");
        }
        target.restart("--require-signature", key + ".pub");
        target.finish();
    }

    @Test
    void aKeyThatOthersMayReadIsRefusedBeforeAnythingIsFrozen() throws IOException {
        Path key = keys.resolve("open.key");
        stasis.run("keygen", key.toString()).expectSuccess();
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-r--r--"));
        var target = stasis.launch(Programs.c("counter"));
        stasis.run("checkpoint", target.name(), "--sign", key.toString()).expectRefusal(1, "chmod 600");
        stasis.run("launch", "--sign", key.toString(), "--", "/bin/true").expectRefusal(1, "chmod 600");
        target.finish();
    }
}
