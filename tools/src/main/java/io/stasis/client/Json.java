package io.stasis.client;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A small JSON reader and writer (RFC 8259) for the lines of the control protocol, so that a client needs no library.
 *
 * <p>Values are {@code Map<String, Object>} in the order of the text, {@code List<Object>}, {@code String},
 * {@code Long}, {@code Double}, {@code Boolean} and null.
 */
public final class Json {
    private static final int DEEPEST = 64;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /**
     * Reads one value.
     *
     * @throws IllegalArgumentException when the text is no JSON; the message tells the position
     */
    public static Object read(String text) {
        Json reader = new Json(text);
        Object value = reader.value();
        reader.blanks();
        if (reader.at != text.length()) {
            throw reader.malformed("the end");
        }
        return value;
    }

    /** Reads one object. */
    public static Map<String, Object> readObject(String text) {
        return object(read(text));
    }

    /** {@code value} as an object; empty when it is none. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(Object value) {
        return value instanceof Map<?, ?> map ? (Map<String, Object>) map : Map.of();
    }

    /** {@code value} as a list of objects; empty when it is none. */
    public static List<Map<String, Object>> objects(Object value) {
        return value instanceof List<?> list ? list.stream().map(Json::object).toList() : List.of();
    }

    /** {@code value} as a list; empty when it is none. */
    public static List<?> list(Object value) {
        return value instanceof List<?> list ? list : List.of();
    }

    /** The field as text, or {@code otherwise} when it is missing or null. */
    public static String string(Map<String, Object> object, String field, String otherwise) {
        Object value = object.get(field);
        return value == null ? otherwise : value.toString();
    }

    /** The field as a number, or {@code otherwise} when it is missing or no number. */
    public static long number(Map<String, Object> object, String field, long otherwise) {
        return object.get(field) instanceof Number number ? number.longValue() : otherwise;
    }

    /** The text of a value on one line. Numbers, booleans and null as they are, anything unknown as a string. */
    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        switch (value) {
            case null -> out.append("null");
            case Map<?, ?> map -> {
                String separator = "{";
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    out.append(separator);
                    quote(entry.getKey().toString(), out);
                    out.append(':');
                    write(entry.getValue(), out);
                    separator = ",";
                }
                out.append(map.isEmpty() ? "{}" : "}");
            }
            case Collection<?> list -> {
                String separator = "[";
                for (Object element : list) {
                    out.append(separator);
                    write(element, out);
                    separator = ",";
                }
                out.append(separator.equals("[") ? "[]" : "]");
            }
            case Double number when number.isNaN() || number.isInfinite() -> out.append("null");
            case Number number -> out.append(number);
            case Boolean truth -> out.append(truth);
            default -> quote(value.toString(), out);
        }
    }

    private static void quote(String string, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            switch (c) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                default -> {
                    if (c < 0x20 || Character.isSurrogate(c)) {
                        escape(c, out);
                    } else {
                        out.append(c);
                    }
                }
            }
        }
        out.append('"');
    }

    private static void escape(char c, StringBuilder out) {
        out.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) {
            out.append(Character.forDigit(c >> shift & 0xf, 16));
        }
    }

    private Object value() {
        blanks();
        if (at == text.length()) {
            throw malformed("a value");
        }
        return switch (text.charAt(at)) {
            case '{' -> object();
            case '[' -> array();
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object() {
        Map<String, Object> object = new LinkedHashMap<>();
        enter();
        if (!skip('}')) {
            do {
                blanks();
                if (at == text.length() || text.charAt(at) != '"') {
                    throw malformed("a field name");
                }
                String name = string();
                expect(':');
                object.put(name, value());
            } while (skip(','));
            expect('}');
        }
        depth--;
        return object;
    }

    private List<Object> array() {
        List<Object> list = new ArrayList<>();
        enter();
        if (!skip(']')) {
            do {
                list.add(value());
            } while (skip(','));
            expect(']');
        }
        depth--;
        return list;
    }

    private void enter() {
        if (++depth > DEEPEST) {
            throw malformed("at most " + DEEPEST + " levels");
        }
        at++;
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        at++;
        while (true) {
            char c = next();
            if (c == '"') {
                return string.toString();
            }
            if (c < 0x20) {
                throw malformed("no control character");
            }
            string.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() {
        char c = next();
        return switch (c) {
            case '"', '\\', '/' -> c;
            case 'b' -> '\b';
            case 'f' -> '\f';
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'u' -> {
                int code = 0;
                for (int i = 0; i < 4; i++) {
                    int digit = Character.digit(next(), 16);
                    if (digit < 0) {
                        throw malformed("four hexadecimal digits");
                    }
                    code = code << 4 | digit;
                }
                yield (char) code;
            }
            default -> throw malformed("an escape sequence");
        };
    }

    private Object number() {
        int start = at;
        boolean whole = true;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            whole &= ".eE".indexOf(text.charAt(at)) < 0;
            at++;
        }
        String digits = text.substring(start, at);
        try {
            if (whole) {
                return Long.valueOf(digits);
            }
            return Double.valueOf(digits);
        } catch (NumberFormatException e) {
            at = start;
            throw malformed("a value");
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw malformed("a value");
        }
        at += word.length();
        return value;
    }

    private char next() {
        if (at == text.length()) {
            throw malformed("the rest of a string");
        }
        return text.charAt(at++);
    }

    private boolean skip(char c) {
        blanks();
        if (at < text.length() && text.charAt(at) == c) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char c) {
        if (!skip(c)) {
            throw malformed("'" + c + "'");
        }
    }

    private void blanks() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private IllegalArgumentException malformed(String expected) {
        return new IllegalArgumentException("no JSON at character " + at + ": expected " + expected);
    }
}
