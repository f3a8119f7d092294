package io.stasis.tools.images;

import io.stasis.client.ExitCode;
import io.stasis.client.Json;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageVerifier;
import io.stasis.tools.StasisCommand;
import java.nio.file.Path;
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
            "Reads every byte of an image and compares all checksums, the chained hashes of its event log included.",
            "All generations, or the one given. Exit code 5 when anything is damaged or missing."
        })
public final class VerifyCommand extends StasisCommand {
    @Parameters(paramLabel = "DIR", description = "Image directory.")
    private Path directory;

    @Option(names = "--generation", paramLabel = "N", description = "Only this generation.")
    private int generation;

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
        boolean whole = true;
        List<Map<String, Object>> report = new ArrayList<>();
        for (ImageDirectory.Generation each : generations) {
            List<String> findings = ImageVerifier.verify(each.path());
            whole &= findings.isEmpty();
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("generation", each.number());
            line.put("path", each.path().toString());
            line.put("ok", findings.isEmpty());
            line.put("problems", findings);
            report.add(line);
            if (!json && findings.isEmpty()) {
                System.out.println("generation " + each.number() + ": all checksums right");
            }
            findings.forEach(finding -> System.err.println("stasis: " + finding));
        }
        if (json) {
            System.out.println(Json.write(Map.of("ok", whole, "generations", report)));
        }
        return whole ? ExitCode.OK : ExitCode.IMAGE;
    }
}
