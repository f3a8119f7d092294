package io.stasis.image;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * What a generation is, for people and {@code jq}: the file manifest.json, whose presence makes a generation complete.
 *
 * @param format {@link FormatVersion}
 * @param stasisVersion version that wrote it
 * @param computation name of the computation
 * @param generation number, from 1
 * @param parent generation that this one builds on, null for a full image
 * @param createdAt time of the commit, ISO 8601
 * @param kernel kernel release of the first host
 * @param architecture processor architecture
 * @param options options of the checkpoint
 * @param hosts one entry a host
 * @param files every file of the generation but this one
 * @param logHead hash of the last record of events.log, hexadecimal
 * @param pauseNanos longest time that a process stood still
 * @param imageBytes sum of the files' sizes
 */
@JsonPropertyOrder({
    "format",
    "stasisVersion",
    "computation",
    "generation",
    "parent",
    "createdAt",
    "kernel",
    "architecture",
    "options",
    "pauseNanos",
    "imageBytes",
    "hosts",
    "files",
    "logHead"
})
public record Manifest(
        int format,
        String stasisVersion,
        String computation,
        int generation,
        Integer parent,
        String createdAt,
        String kernel,
        String architecture,
        Map<String, String> options,
        List<HostEntry> hosts,
        List<FileEntry> files,
        String logHead,
        long pauseNanos,
        long imageBytes) {

    /** Name of the file. */
    public static final String NAME = "manifest.json";

    private static final String CHECKSUM = "checksum";
    private static final int LONGEST = 64 << 20;
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper()
            .enable(SerializationFeature.INDENT_OUTPUT)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    /** The tree of one host; {@code name} is also its directory inside the generation. */
    public record HostEntry(String name, List<Integer> roots, List<ProcessEntry> processes) {}

    /** @param pagesBytes size of its page file */
    public record ProcessEntry(
            int pid,
            int parent,
            String name,
            List<String> commandLine,
            int threads,
            long memoryBytes,
            long pagesBytes,
            int userId) {}

    /** @param name relative to the generation directory; @param crc32c eight hexadecimal digits */
    public record FileEntry(String name, long size, String crc32c) {
        public static FileEntry of(String name, long size, int crc32c) {
            return new FileEntry(name, size, HEX.toHexDigits(crc32c));
        }
    }

    /** The text of the file: this manifest with the checksum of its canonical form. */
    String toJson() {
        ObjectNode tree = JSON.valueToTree(this);
        tree.put(CHECKSUM, checksum(tree));
        try {
            return JSON.writeValueAsString(tree) + "\n";
        } catch (JsonProcessingException e) {
            throw new ImageException("cannot write the manifest: " + e.getMessage(), e);
        }
    }

    /** Reads and checks the manifest in a generation directory. */
    static Manifest read(Path generation) {
        Path file = generation.resolve(NAME);
        try (FileChannel channel = PrivateFiles.openForReading(file)) {
            if (channel.size() > LONGEST) {
                throw ImageException.damaged(file, "it has " + channel.size() + " bytes");
            }
            ByteBuffer bytes = ByteBuffer.allocate((int) channel.size());
            PrivateFiles.readFully(channel, bytes, 0, file);
            return parse(bytes.array(), file);
        } catch (IOException e) {
            throw ImageException.reading("read", file, e);
        }
    }

    private static Manifest parse(byte[] text, Path file) {
        try {
            JsonNode node = JSON.readTree(new String(text, StandardCharsets.UTF_8));
            if (!(node instanceof ObjectNode tree)) {
                throw ImageException.damaged(file, "it holds no JSON object");
            }
            FormatVersion.check(tree.path("format").asInt(), file.toString());
            JsonNode checksum = tree.remove(CHECKSUM);
            if (checksum == null || !checksum.asText().equals(checksum(tree))) {
                throw ImageException.damaged(file, "its checksum is wrong");
            }
            Manifest manifest = JSON.treeToValue(tree, Manifest.class);
            if (manifest.hosts == null || manifest.files == null || manifest.options == null) {
                throw ImageException.damaged(file, "it names no hosts, files or options");
            }
            // The checksum is that of the fields: a changed blank, or a byte that is no UTF-8, shows here.
            if (!Arrays.equals(manifest.toJson().getBytes(StandardCharsets.UTF_8), text)) {
                throw ImageException.damaged(file, "it is not as it was written");
            }
            return manifest;
        } catch (JsonProcessingException e) {
            throw new ImageException(
                    file + " is damaged: it holds no valid JSON (" + e.getOriginalMessage()
                            + "); restart from another generation",
                    e);
        }
    }

    private static String checksum(ObjectNode tree) {
        byte[] canonical = tree.toString().getBytes(StandardCharsets.UTF_8);
        return HEX.toHexDigits(Crc32c.of(canonical, 0, canonical.length));
    }
}
