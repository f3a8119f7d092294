package io.stasis.linux.proc;

import java.nio.charset.StandardCharsets;

/**
 * The bytes of one procfs file and a position in them. The thread that read it owns it, until its next read: nothing is
 * copied. Numbers are parsed in place; a word or line becomes a String only when it is asked for.
 */
final class ProcText {
    byte[] bytes = new byte[64 * 1024];
    int length;
    int position;

    boolean atEnd() {
        return position >= length;
    }

    byte peek() {
        return position < length ? bytes[position] : 0;
    }

    void skipBlanks() {
        while (position < length && (bytes[position] == ' ' || bytes[position] == '\t')) {
            position++;
        }
    }

    /** Moves behind the end of this line. */
    void skipLine() {
        while (position < length && bytes[position++] != '\n') {
            // look on
        }
    }

    /** Moves to the end of this line, at its line feed or the end of the text. */
    int lineEnd() {
        int end = position;
        while (end < length && bytes[end] != '\n') {
            end++;
        }
        return end;
    }

    boolean atLineEnd() {
        skipBlanks();
        return position >= length || bytes[position] == '\n';
    }

    /** The next number, any blanks before it skipped; 0 when there is none. Wraps like the kernel's unsigned long. */
    long decimal() {
        skipBlanks();
        boolean negative = peek() == '-';
        if (negative) {
            position++;
        }
        long value = 0;
        while (position < length) {
            int digit = bytes[position] - '0';
            if (digit < 0 || digit > 9) {
                break;
            }
            value = value * 10 + digit;
            position++;
        }
        return negative ? -value : value;
    }

    int integer() {
        return (int) decimal();
    }

    long hex() {
        skipBlanks();
        long value = 0;
        while (position < length) {
            int digit = Character.digit(bytes[position], 16);
            if (digit < 0) {
                break;
            }
            value = value << 4 | digit;
            position++;
        }
        return value;
    }

    int octal() {
        skipBlanks();
        int value = 0;
        while (position < length) {
            int digit = bytes[position] - '0';
            if (digit < 0 || digit > 7) {
                break;
            }
            value = value << 3 | digit;
            position++;
        }
        return value;
    }

    /** All numbers up to the end of this line. */
    int[] integers() {
        int[] values = new int[8];
        int count = 0;
        while (!atLineEnd()) {
            int before = position;
            int value = integer();
            if (position == before) {
                break;
            }
            if (count == values.length) {
                values = java.util.Arrays.copyOf(values, 2 * count);
            }
            values[count++] = value;
        }
        return java.util.Arrays.copyOf(values, count);
    }

    /** What stands before the next colon of this line; the position is then behind that colon. */
    String key() {
        int start = position;
        while (position < length && bytes[position] != ':' && bytes[position] != '\n') {
            position++;
        }
        int end = position;
        if (peek() == ':') {
            position++;
        }
        while (end > start && (bytes[end - 1] == ' ' || bytes[end - 1] == '\t')) {
            end--;
        }
        return new String(bytes, start, end - start, StandardCharsets.ISO_8859_1);
    }

    /** The rest of this line without blanks around it; the position is then at the next line. */
    String restOfLine() {
        skipBlanks();
        int start = position;
        int end = lineEnd();
        position = Math.min(end + 1, length);
        while (end > start && (bytes[end - 1] == ' ' || bytes[end - 1] == '\t')) {
            end--;
        }
        return text(start, end);
    }

    String text(int start, int end) {
        return new String(bytes, start, end - start, StandardCharsets.UTF_8);
    }

    /** Whether this line begins with {@code prefix} at the position. */
    boolean startsWith(String prefix) {
        if (length - position < prefix.length()) {
            return false;
        }
        for (int i = 0; i < prefix.length(); i++) {
            if (bytes[position + i] != prefix.charAt(i)) {
                return false;
            }
        }
        return true;
    }

    static ProcText of(byte[] bytes) {
        ProcText text = new ProcText();
        text.bytes = bytes;
        text.length = bytes.length;
        return text;
    }
}
