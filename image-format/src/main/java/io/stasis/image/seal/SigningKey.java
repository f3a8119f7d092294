package io.stasis.image.seal;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An Ed25519 key pair that signs images. The file, for its owner only, holds two PEM blocks: the private key (PKCS #8) and
 * the public one (X.509); beside it lies a file with the public one alone, to be given to whoever checks.
 */
public final class SigningKey {
    /** Appended to the name of a key file, it names that of the public key. */
    public static final String PUBLIC = ".pub";

    private static final String ALGORITHM = "Ed25519";
    private static final String PRIVATE_BLOCK = "PRIVATE KEY";
    private static final String PUBLIC_BLOCK = "PUBLIC KEY";
    private static final Base64.Encoder LINES = Base64.getMimeEncoder(64, new byte[] {'\n'});

    private final PrivateKey secret;
    private final PublicKey open;

    private SigningKey(PrivateKey secret, PublicKey open) {
        this.secret = secret;
        this.open = open;
    }

    /** Makes a key and writes its two files; an existing one is never replaced. */
    public static SigningKey generate(Path file) {
        KeyPair pair;
        try {
            pair = KeyPairGenerator.getInstance(ALGORITHM).generateKeyPair();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK from 15 on has Ed25519", e);
        }
        String open = block(PUBLIC_BLOCK, pair.getPublic().getEncoded());
        write(file, "rw-------", block(PRIVATE_BLOCK, pair.getPrivate().getEncoded()) + open);
        write(file.resolveSibling(file.getFileName() + PUBLIC), "rw-r--r--", open);
        return new SigningKey(pair.getPrivate(), pair.getPublic());
    }

    private static void write(Path file, String permissions, String text) {
        FileAttribute<Set<PosixFilePermission>> attribute =
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions));
        try (var channel = Files.newByteChannel(
                file, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), attribute)) {
            channel.write(java.nio.ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII)));
        } catch (FileAlreadyExistsException e) {
            throw new KeyException(
                    "there is a file " + file + " already; a key is not replaced: choose another name", e);
        } catch (IOException e) {
            throw new KeyException("cannot write the key file " + file + ": " + e.getMessage(), e);
        }
    }

    /** Reads a key file; one that others than its owner may read or write is refused. */
    public static SigningKey read(Path file) {
        try {
            Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(file);
            String mode = PosixFilePermissions.toString(permissions);
            if (!mode.endsWith("------")) {
                throw new KeyException("the key file " + file + " is not for its owner only (" + mode
                        + "), so that others may sign with it; run `chmod 600 " + file + "`, or make a new key");
            }
            String text = text(file);
            KeyFactory factory = KeyFactory.getInstance(ALGORITHM);
            PrivateKey secret = factory.generatePrivate(new PKCS8EncodedKeySpec(bytes(text, PRIVATE_BLOCK, file)));
            SigningKey key = new SigningKey(secret, publicKey(text, file));
            if (!verifies(key.open, key.open.getEncoded(), key.sign(key.open.getEncoded()))) {
                throw new KeyException("the two keys in " + file + " do not belong together; make a new key");
            }
            return key;
        } catch (IOException e) {
            throw unreadable(file, e);
        } catch (GeneralSecurityException e) {
            throw new KeyException(file + " holds no valid Ed25519 key; `stasis keygen` makes one", e);
        }
    }

    /** Reads the public key in a file: the one that {@code generate} wrote beside, or the key file itself. */
    public static PublicKey readPublic(Path file) {
        try {
            return publicKey(text(file), file);
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }

    private static KeyException unreadable(Path file, IOException e) {
        return e instanceof NoSuchFileException
                ? new KeyException("there is no key file " + file + "; `stasis keygen " + file + "` makes one", e)
                : new KeyException("cannot read the key file " + file + ": " + e.getMessage(), e);
    }

    private static String text(Path file) throws IOException {
        return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
    }

    private static PublicKey publicKey(String text, Path file) {
        return decode(bytes(text, PUBLIC_BLOCK, file), file.toString());
    }

    /** @param where for the message of the exception */
    public static PublicKey decode(byte[] encoded, String where) {
        try {
            return KeyFactory.getInstance(ALGORITHM).generatePublic(new X509EncodedKeySpec(encoded));
        } catch (GeneralSecurityException e) {
            throw new KeyException(where + " holds no valid Ed25519 key; `stasis keygen` makes one", e);
        }
    }

    private static byte[] bytes(String text, String block, Path file) {
        Matcher found = Pattern.compile("-----BEGIN " + block + "-----([A-Za-z0-9+/=\\s]*)-----END " + block + "-----")
                .matcher(text);
        if (!found.find()) {
            throw new KeyException(file + " holds no " + block.toLowerCase(java.util.Locale.ROOT)
                    + " in PEM form; `stasis keygen` makes such files");
        }
        try {
            return Base64.getMimeDecoder().decode(found.group(1));
        } catch (IllegalArgumentException e) {
            throw new KeyException(file + " holds no valid base64: " + e.getMessage(), e);
        }
    }

    private static String block(String name, byte[] bytes) {
        return "-----BEGIN " + name + "-----\n" + LINES.encodeToString(bytes) + "\n-----END " + name + "-----\n";
    }

    public PublicKey publicKey() {
        return open;
    }

    byte[] sign(byte[] bytes) {
        try {
            Signature signature = Signature.getInstance(ALGORITHM);
            signature.initSign(secret);
            signature.update(bytes);
            return signature.sign();
        } catch (GeneralSecurityException e) {
            throw new KeyException("cannot sign: " + e.getMessage(), e);
        }
    }

    static boolean verifies(PublicKey key, byte[] bytes, byte[] signed) {
        try {
            Signature signature = Signature.getInstance(ALGORITHM);
            signature.initVerify(key);
            signature.update(bytes);
            return signature.verify(signed);
        } catch (GeneralSecurityException e) {
            return false; // of a wrong length, or no point of the curve
        }
    }

    /** The first half of the SHA-256 of a public key, by which people tell keys apart. */
    public static String fingerprint(PublicKey key) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(key.getEncoded());
            return HexFormat.of().formatHex(hash, 0, 16);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
