package io.stasis.tools.images;

import io.stasis.client.ExitCode;
import io.stasis.client.Json;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageVerifier;
import io.stasis.image.seal.Seal;
import io.stasis.image.seal.SigningKey;
import io.stasis.tools.StasisCommand;
import java.nio.file.Path;
import java.security.PublicKey;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis verify}. */
@Command(
        name = "verify",
        description = {
            "Reads every byte of an image and compares all checksums, the chained hashes of its event log and, when it is signed, "
                    + "its signature. A record of the log that was removed, moved, altered or put in is named.",
            "All generations, or the one given. Exit code 5 when anything is damaged or missing."
        })
public final class VerifyCommand extends StasisCommand {
    @Parameters(paramLabel = "DIR", description = "Image directory.")
    private Path directory;

    @Option(names = "--generation", paramLabel = "N", description = "Only this generation.")
    private int generation;

    @Option(
            names = "--require-signature",
            paramLabel = "PUBKEY",
            description = "Also find fault with what is not signed with the key whose public half is in this file.")
    private Path publicKey;

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() {
        ImageDirectory images = ImageDirectory.open(directory);
        List<ImageDirectory.Generation> generations =
                generation > 0 ? List.of(images.generation(generation)) : images.generations();
        if (generations.isEmpty()) {
            images.latest(); // says that there is none
        }
        PublicKey key = publicKey == null ? null : SigningKey.readPublic(publicKey);
        boolean whole = true;
        List<Map<String, Object>> report = new ArrayList<>();
        for (ImageDirectory.Generation each : generations) {
            List<String> findings = new ArrayList<>(ImageVerifier.verify(each.path()));
            Seal.problem(each, key).ifPresent(findings::add);
            whole &= findings.isEmpty();
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("generation", each.number());
            line.put("path", each.path().toString());
            line.put("ok", findings.isEmpty());
            line.put("problems", findings);
            if (findings.isEmpty() && Seal.isSigned(each.path())) {
                line.put("signedWith", SigningKey.fingerprint(Seal.signer(each.path())));
            }
            report.add(line);
            if (!json && findings.isEmpty()) {
                System.out.println("generation " + each.number() + ": all checksums right" + signed(each));
            }
            findings.forEach(finding -> System.err.println("stasis: " + finding));
        }
        if (json) {
            System.out.println(Json.write(Map.of("ok", whole, "generations", report)));
        }
        return whole ? ExitCode.OK : ExitCode.IMAGE;
    }

    private static String signed(ImageDirectory.Generation generation) {
        return Seal.isSigned(generation.path())
                ? ", signed with key " + SigningKey.fingerprint(Seal.signer(generation.path()))
                : "";
    }
}
