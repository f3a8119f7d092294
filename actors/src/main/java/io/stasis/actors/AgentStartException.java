package io.stasis.actors;

/** The agent could not be started; the message is one sentence for the user. */
public final class AgentStartException extends RuntimeException {
    public AgentStartException(String message, Throwable cause) {
        super(message, cause);
    }
}
