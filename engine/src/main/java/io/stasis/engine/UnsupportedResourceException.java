package io.stasis.engine;

import java.util.List;
import java.util.stream.Collectors;

/** The tree holds resources that cannot be captured; the message names all of them. */
public final class UnsupportedResourceException extends EngineException {
    private final transient List<Engine.Problem> problems;

    public UnsupportedResourceException(List<Engine.Problem> problems) {
        super(
                Kind.UNSUPPORTED,
                "cannot checkpoint: "
                        + problems.stream().map(Engine.Problem::sentence).collect(Collectors.joining("; and ")));
        this.problems = List.copyOf(problems);
    }

    public List<Engine.Problem> problems() {
        return problems;
    }
}
