package io.stasis.tools.explain;

import java.util.function.Predicate;
import java.util.regex.Pattern;

/** Names of entities by a pattern: {@code *} stands for any text, {@code ?} for one character. */
public final class EntityPattern {
    private EntityPattern() {}

    /** A pattern without either matches every name that contains it. */
    public static Predicate<String> of(String pattern) {
        if (!pattern.contains("*") && !pattern.contains("?")) {
            return name -> name.contains(pattern);
        }
        StringBuilder expression = new StringBuilder();
        for (char c : pattern.toCharArray()) {
            switch (c) {
                case '*' -> expression.append(".*");
                case '?' -> expression.append('.');
                default -> expression.append(Pattern.quote(String.valueOf(c)));
            }
        }
        return Pattern.compile(expression.toString(), Pattern.DOTALL).asMatchPredicate();
    }
}
