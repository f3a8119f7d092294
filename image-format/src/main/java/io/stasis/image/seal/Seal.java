package io.stasis.image.seal;

import io.stasis.image.ImageDirectory.Generation;
import io.stasis.image.ImageException;
import io.stasis.image.ImageVerifier;
import io.stasis.image.ImageWriteException;
import io.stasis.image.Manifest;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.PublicKey;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/**
 * The signature of a generation: the file {@value ImageVerifier#SEAL} beside the manifest.
 *
 * <pre>
 *   stasis-seal 1
 *   log-head HEX               hash of the last record of events.log
 *   file SHA-256 NAME          for the manifest and each of its files, by name
 *   key BASE64                 the public key (X.509)
 *   signature BASE64           Ed25519, of all lines before
 * </pre>
 *
 * The manifest's own checksums find damage; whoever forges an image can make them anew. The hashes here cannot be made to
 * fit, and the signature only with the key.
 */
public final class Seal {
    private static final String FIRST_LINE = "stasis-seal 1";
    private static final String SIGNATURE = "signature ";
    private static final String KEY = "key ";
    private static final int LONGEST = 64 << 20;

    private Seal() {}

    /** Signs a generation that is complete but for this, and not forced to disk yet. */
    public static void write(Path generation, Manifest manifest, SigningKey key) {
        Path file = generation.resolve(ImageVerifier.SEAL);
        String signed = lines(generation, manifest, key.publicKey());
        String text = signed + SIGNATURE
                + Base64.getEncoder().encodeToString(key.sign(signed.getBytes(StandardCharsets.UTF_8))) + "\n";
        try (var channel = Files.newByteChannel(
                file,
                Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
            channel.write(java.nio.ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
        } catch (IOException e) {
            throw ImageWriteException.writing("sign", file, e);
        }
    }

    private static String lines(Path generation, Manifest manifest, PublicKey key) {
        StringBuilder text = new StringBuilder(FIRST_LINE).append('\n');
        text.append("log-head ").append(manifest.logHead()).append('\n');
        List<String> names = new ArrayList<>(List.of(Manifest.NAME));
        manifest.files().stream().map(Manifest.FileEntry::name).sorted().forEach(names::add);
        for (String name : names) {
            text.append("file ")
                    .append(hash(generation.resolve(name)))
                    .append(' ')
                    .append(name)
                    .append('\n');
        }
        return text.append(KEY)
                .append(Base64.getEncoder().encodeToString(key.getEncoded()))
                .append('\n')
                .toString();
    }

    private static String hash(Path file) {
        try (InputStream in = Files.newInputStream(file, LinkOption.NOFOLLOW_LINKS)) {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] piece = new byte[1 << 20];
            for (int got = in.read(piece); got >= 0; got = in.read(piece)) {
                digest.update(piece, 0, got);
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (IOException e) {
            throw ImageException.reading("read", file, e);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    /** Whether a generation is signed, by whomever. */
    public static boolean isSigned(Path generation) {
        return Files.exists(generation.resolve(ImageVerifier.SEAL), LinkOption.NOFOLLOW_LINKS);
    }

    /** The key that a generation says it is signed with. {@link #problem} tells whether that is so. */
    public static PublicKey signer(Path generation) {
        Path file = generation.resolve(ImageVerifier.SEAL);
        return read(file)
                .lines()
                .filter(line -> line.startsWith(KEY))
                .findFirst()
                .map(line -> decode(line.substring(KEY.length()), file))
                .orElseThrow(() -> new ImageException(file + " is damaged: it names no key"));
    }

    private static PublicKey decode(String base64, Path file) {
        try {
            return SigningKey.decode(Base64.getDecoder().decode(base64), file.toString());
        } catch (IllegalArgumentException | KeyException e) {
            throw new ImageException(file + " is damaged: it names no valid key", e);
        }
    }

    private static String read(Path file) {
        try (InputStream in = Files.newInputStream(file, LinkOption.NOFOLLOW_LINKS)) {
            byte[] bytes = in.readNBytes(LONGEST);
            return new String(bytes, StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw ImageException.reading("read", file, e);
        }
    }

    /**
     * What is wrong with the signature of a generation, in one sentence; empty when all is well.
     *
     * @param required the key it must be signed with; null to take the one that it names
     */
    public static Optional<String> problem(Generation generation, PublicKey required) {
        Path directory = generation.path();
        Path file = directory.resolve(ImageVerifier.SEAL);
        try {
            if (!isSigned(directory)) {
                return required == null
                        ? Optional.empty()
                        : Optional.of(directory + " is not signed, and a signature of key "
                                + SigningKey.fingerprint(required) + " is required");
            }
            String text = read(file);
            PublicKey signer = signer(directory);
            if (required != null && !required.equals(signer)) {
                return Optional.of(directory + " is signed with key " + SigningKey.fingerprint(signer)
                        + ", and a signature of key " + SigningKey.fingerprint(required) + " is required");
            }
            int end = text.lastIndexOf(SIGNATURE);
            if (!text.startsWith(FIRST_LINE + "\n") || end < 0 || !isRight(text, end, signer)) {
                return Optional.of(file + " is forged or damaged: its signature is not one of key "
                        + SigningKey.fingerprint(signer));
            }
            return difference(generation, text.substring(0, end), signer);
        } catch (ImageException e) {
            return Optional.of(e.getMessage());
        }
    }

    private static boolean isRight(String text, int end, PublicKey signer) {
        try {
            byte[] signature = Base64.getDecoder()
                    .decode(text.substring(end + SIGNATURE.length()).strip());
            return SigningKey.verifies(signer, text.substring(0, end).getBytes(StandardCharsets.UTF_8), signature);
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    /** Names what is not as it was signed. */
    private static Optional<String> difference(Generation generation, String signed, PublicKey signer) {
        Path directory = generation.path();
        Map<String, String> files = new TreeMap<>();
        signed.lines().filter(line -> line.startsWith("file ")).forEach(line -> {
            String[] words = line.split(" ", 3);
            files.put(words[2], words[1]);
        });
        for (Map.Entry<String, String> entry : files.entrySet()) {
            Path file = directory.resolve(entry.getKey());
            if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
                return Optional.of(file + " is missing, and the signature covers it");
            }
            if (!hash(file).equals(entry.getValue())) {
                return Optional.of(file + " is forged or damaged: it is not what was signed with key "
                        + SigningKey.fingerprint(signer));
            }
        }
        // All that the manifest names must be covered too; it is itself as it was signed.
        return signed.equals(lines(directory, generation.manifest(), signer))
                ? Optional.empty()
                : Optional.of(directory.resolve(Manifest.NAME) + " names files that the signature does not cover");
    }
}
