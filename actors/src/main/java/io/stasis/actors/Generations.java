package io.stasis.actors;

import io.stasis.actors.journal.OpenLogs;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import io.stasis.image.FileSummary;
import io.stasis.image.FormatVersion;
import io.stasis.image.ImageDirectory;
import io.stasis.image.ImageDirectory.Generation;
import io.stasis.image.ImageDirectory.Staging;
import io.stasis.image.ImageVerifier;
import io.stasis.image.Manifest;
import io.stasis.image.log.EventLog;
import io.stasis.image.seal.Seal;
import io.stasis.image.seal.SigningKey;
import java.nio.file.Path;
import java.security.PublicKey;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The disk side of a coordinator: begins, commits and verifies generations. All of it blocks. */
final class Generations {
    /** Option of the manifest that keeps a tree's cookie, with the host's name behind it. */
    private static final String COOKIE = "cookie.";

    /** @param path of the generation; @param bytes size of the image */
    record Committed(String path, long bytes) {}

    /**
     * An image that is whole.
     *
     * @param host the tree's directory in it
     * @param cookie value of STASIS_COOKIE in the tree, or null
     */
    record Verified(int number, String path, String host, String logHead, String cookie) {}

    private final OpenLogs.Shared logs;
    private final String version;

    Generations(OpenLogs.Shared logs, String version) {
        this.logs = logs;
        this.version = version;
    }

    long lastSequence() {
        return logs.log().lastSequence();
    }

    /** Names of the computations that the log knows. */
    Set<String> computations() {
        Set<String> names = new java.util.TreeSet<>();
        for (String id : logs.index().entities("computation|")) {
            names.add(id.substring("computation|".length()));
        }
        return names;
    }

    Staging begin(Path directory, Set<String> hosts) {
        Staging staging = ImageDirectory.create(directory).begin();
        try {
            hosts.forEach(staging::host);
            return staging;
        } catch (RuntimeException e) {
            staging.close();
            throw e;
        }
    }

    Committed commit(
            Staging staging,
            String computation,
            Map<String, Tree> trees,
            Map<String, Answer.PhaseDone> written,
            long firstSequence,
            long pausedNanos,
            Map<String, String> options,
            SigningKey key) {
        List<Manifest.HostEntry> hosts = new ArrayList<>();
        List<Manifest.FileEntry> files = new ArrayList<>();
        Map<String, String> all = new java.util.TreeMap<>(options);
        long bytes = 0;
        for (Map.Entry<String, Answer.PhaseDone> host : written.entrySet()) {
            Outcome.Finished finished = host.getValue().finished();
            List<Manifest.ProcessEntry> processes = new ArrayList<>();
            for (Outcome.ProcessSummary p : finished.processes()) {
                processes.add(new Manifest.ProcessEntry(
                        p.pid(),
                        p.parent(),
                        p.name(),
                        p.commandLine(),
                        p.threads(),
                        p.memoryBytes(),
                        p.pagesBytes(),
                        p.userId()));
            }
            for (Outcome.ImageFile file : finished.files()) {
                files.add(Manifest.FileEntry.of(file.name(), file.size(), file.crc32c()));
                bytes += file.size();
            }
            Tree tree = trees.get(host.getKey());
            hosts.add(new Manifest.HostEntry(host.getKey(), List.of(tree.root()), processes));
            if (tree.cookie() != null) {
                all.put(COOKIE + host.getKey(), tree.cookie());
            }
        }
        EventLog.Slice slice = EventLog.writeSlice(
                staging.path().resolve(ImageVerifier.LOG), logs.index().since(firstSequence));
        FileSummary log = slice.summary();
        files.add(Manifest.FileEntry.of(ImageVerifier.LOG, log.size(), log.crc32c()));
        logs.log().force();
        Manifest manifest = new Manifest(
                FormatVersion.CURRENT,
                version,
                computation,
                staging.number(),
                null,
                Instant.now().toString(),
                System.getProperty("os.version"),
                System.getProperty("os.arch"),
                all,
                hosts,
                files,
                HexFormat.of().formatHex(slice.head()),
                pausedNanos,
                bytes + log.size());
        Generation generation = key == null
                ? staging.commit(manifest)
                : staging.commit(manifest, complete -> Seal.write(complete, manifest, key));
        return new Committed(generation.path().toString(), bytes + log.size());
    }

    /**
     * @param number 0 for the newest complete generation
     * @param requiredKey base64 of the public key that must have signed it, null for none
     */
    Verified verify(Path directory, int number, String host, String requiredKey) {
        ImageDirectory images = ImageDirectory.open(directory);
        Generation generation = number == 0 ? images.latest() : images.generation(number);
        List<String> findings = ImageVerifier.verify(generation.path());
        if (!findings.isEmpty()) {
            throw new EngineException(EngineException.Kind.IMAGE, String.join("; and ", findings));
        }
        if (requiredKey != null) {
            PublicKey key = SigningKey.decode(Base64.getDecoder().decode(requiredKey), "the request");
            Seal.problem(generation, key).ifPresent(problem -> {
                throw new EngineException(EngineException.Kind.IMAGE, problem);
            });
        }
        Manifest manifest = generation.manifest();
        List<String> hosts =
                manifest.hosts().stream().map(Manifest.HostEntry::name).toList();
        String chosen = hosts.size() == 1 ? hosts.getFirst() : host;
        if (!hosts.contains(chosen)) {
            throw new EngineException(
                    EngineException.Kind.IMAGE,
                    generation.path() + " holds trees of the hosts " + hosts + " and none of " + host
                            + "; restart each on its own host");
        }
        return new Verified(
                generation.number(),
                generation.path().toString(),
                chosen,
                manifest.logHead(),
                new HashMap<>(manifest.options()).get(COOKIE + chosen));
    }

    /** The computation that an image directory belongs to. */
    static String computationOf(Path directory, int number) {
        ImageDirectory images = ImageDirectory.open(directory);
        return (number == 0 ? images.latest() : images.generation(number))
                .manifest()
                .computation();
    }
}
