package io.stasis.tools.images;

import io.stasis.image.seal.SigningKey;
import io.stasis.tools.StasisCommand;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** {@code stasis keygen}. */
@Command(
        name = "keygen",
        description = {
            "Makes a key that signs images: FILE, for its owner only, and FILE.pub, for whoever checks them.",
            "An existing file is never replaced."
        })
public final class KeygenCommand extends StasisCommand {
    @Parameters(
            paramLabel = "FILE",
            arity = "0..1",
            description = "The file. Default: stasis.key in the current directory.")
    private Path file = Path.of("stasis.key");

    @Override
    public Integer call() {
        SigningKey key = SigningKey.generate(file);
        System.out.println("key " + SigningKey.fingerprint(key.publicKey()) + ": " + file + " signs, " + file
                + SigningKey.PUBLIC + " checks");
        return 0;
    }
}
