package io.stasis.image;

import io.stasis.image.log.EventLog;
import io.stasis.image.log.LogAudit;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Reads every byte of a generation and holds it against the manifest: which files there are, their sizes and checksums,
 * the checksums inside page files and records, the chain of the event log.
 */
public final class ImageVerifier {
    /** Name of the log slice in a generation. */
    public static final String LOG = "events.log";

    /** Name of the signature of a generation, see {@link io.stasis.image.seal.Seal}. */
    public static final String SEAL = "manifest.sig";

    private static final String AND = "; and ";

    private ImageVerifier() {}

    /** What is wrong, one sentence each that names the file; empty when all is well. */
    public static List<String> verify(Path generation) {
        List<String> findings = new ArrayList<>();
        Manifest manifest;
        try {
            manifest = Manifest.read(generation);
        } catch (ImageException e) {
            return List.of(e.getMessage());
        }
        Map<String, Path> present = filesOf(generation, findings);
        present.remove(Manifest.NAME);
        present.remove(SEAL);
        for (Manifest.FileEntry entry : manifest.files()) {
            Path file = present.remove(entry.name());
            if (file == null) {
                findings.add("the image is incomplete: " + generation.resolve(entry.name()) + " is missing");
            } else {
                check(entry, file, findings);
            }
        }
        present.values().forEach(extra -> findings.add(extra + " does not belong to the image"));
        if (findings.isEmpty()) {
            checkLog(manifest, generation, findings);
        }
        return findings;
    }

    private static Map<String, Path> filesOf(Path generation, List<String> findings) {
        Map<String, Path> files = new TreeMap<>();
        try (Stream<Path> all = Files.walk(generation)) {
            for (Path path : all.toList()) {
                if (Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
                    files.put(generation.relativize(path).toString(), path);
                } else if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
                    findings.add(path + " is neither file nor directory and does not belong to the image");
                }
            }
        } catch (IOException e) {
            findings.add(ImageException.reading("list", generation, e).getMessage());
        } catch (UncheckedIOException e) {
            findings.add(
                    ImageException.reading("list", generation, e.getCause()).getMessage());
        }
        return files;
    }

    private static void check(Manifest.FileEntry entry, Path file, List<String> findings) {
        try {
            FileSummary summary = PrivateFiles.summarize(file);
            if (file.endsWith(LOG) && !matches(entry, summary)) {
                findings.add(wrongLog(file, "it is not the one that the manifest names"));
            } else if (summary.size() != entry.size()) {
                findings.add(file + " is damaged: it has " + summary.size() + " bytes instead of " + entry.size());
            } else if (!HexFormat.of().toHexDigits(summary.crc32c()).equals(entry.crc32c())) {
                findings.add(wrongChecksum(file));
            }
        } catch (ImageException e) {
            findings.add(e.getMessage());
        }
    }

    private static boolean matches(Manifest.FileEntry entry, FileSummary summary) {
        return summary.size() == entry.size()
                && HexFormat.of().toHexDigits(summary.crc32c()).equals(entry.crc32c());
    }

    /** Names the records that are wrong, when there are some. */
    private static String wrongLog(Path file, String otherwise) {
        String records = records(file);
        return file + " is damaged: " + (records.isEmpty() ? otherwise : records.substring(AND.length()));
    }

    /** Each with "; and " before it. */
    private static String records(Path log) {
        return LogAudit.findings(log).stream().map(AND::concat).collect(Collectors.joining());
    }

    /** Says also where the damage is, when it is a page file. */
    private static String wrongChecksum(Path file) {
        if (file.toString().endsWith(".pages")) {
            try (PageFile pages = PageFile.open(file)) {
                pages.verify();
            } catch (ImageException e) {
                return e.getMessage();
            }
        }
        return file + " is damaged: its checksum is not that of the manifest; restart from another generation";
    }

    private static void checkLog(Manifest manifest, Path generation, List<String> findings) {
        if (manifest.logHead() == null) {
            return;
        }
        try (EventLog log = EventLog.openReadOnly(generation.resolve(LOG))) {
            if (!HexFormat.of().formatHex(log.head()).equals(manifest.logHead())) {
                findings.add(
                        generation.resolve(LOG) + " is damaged: it ends otherwise than the manifest says, with record "
                                + log.lastSequence() + ": records were removed at its end, or it was written anew"
                                + records(generation.resolve(LOG)));
            } else if (!LogAudit.findings(generation.resolve(LOG)).isEmpty()) {
                findings.add(wrongLog(generation.resolve(LOG), ""));
            } else if (log.recovered().bytes() > 0) {
                findings.add(generation.resolve(LOG) + " is damaged: its last record is cut off");
            }
        } catch (ImageException e) {
            findings.add(e.getMessage());
        }
    }
}
