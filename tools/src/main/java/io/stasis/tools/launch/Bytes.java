package io.stasis.tools.launch;

import io.stasis.linux.libc.Libc;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Strings as the kernel sees them: bytes without a zero byte. */
final class Bytes {
    private Bytes() {}

    /** The last {@code count} arguments of this process as they were given, whatever their encoding. */
    static List<byte[]> lastArguments(int count) {
        try {
            List<byte[]> all = split(Files.readAllBytes(Path.of("/proc/self/cmdline")));
            return all.subList(all.size() - count, all.size());
        } catch (IOException e) {
            throw new IllegalStateException("cannot read /proc/self/cmdline: " + e.getMessage(), e);
        }
    }

    /** Splits a block of strings that each end in a zero byte. */
    static List<byte[]> split(byte[] block) {
        List<byte[]> parts = split(block, 0);
        return parts.getLast().length == 0 ? parts.subList(0, parts.size() - 1) : parts;
    }

    /** Splits at every {@code separator}; n separators give n + 1 parts. */
    static List<byte[]> split(byte[] bytes, int separator) {
        List<byte[]> parts = new ArrayList<>();
        int start = 0;
        for (int i = 0; i <= bytes.length; i++) {
            if (i == bytes.length || bytes[i] == separator) {
                parts.add(Arrays.copyOfRange(bytes, start, i));
                start = i + 1;
            }
        }
        return parts;
    }

    static boolean startsWith(byte[] bytes, String ascii) {
        byte[] start = ascii.getBytes(StandardCharsets.US_ASCII);
        return bytes.length >= start.length && Arrays.equals(bytes, 0, start.length, start, 0, start.length);
    }

    static byte[] join(byte[] directory, byte[] name) {
        if (directory.length == 0) {
            return name;
        }
        byte[] path = Arrays.copyOf(directory, directory.length + 1 + name.length);
        path[directory.length] = '/';
        System.arraycopy(name, 0, path, directory.length + 1, name.length);
        return path;
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** A native copy with a terminating zero byte. */
    static ByteBuffer nativeString(byte[] bytes) {
        return Libc.buffer(bytes.length + 1).put(bytes).rewind();
    }
}
