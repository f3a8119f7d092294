package io.stasis.tools.commands;

import io.stasis.client.StasisClient.Target;
import java.util.Optional;

/** Reads "NAME or PID" from the command line. */
final class TargetOptions {
    private TargetOptions() {}

    /** The one target among a name, a pid and all; empty when none or several were given. */
    static Optional<Target> one(String name, Integer pid, boolean all) {
        int given = (name != null ? 1 : 0) + (pid != null ? 1 : 0) + (all ? 1 : 0);
        if (given != 1) {
            return Optional.empty();
        }
        if (name != null) {
            return Optional.of(new Target.Name(name));
        }
        return Optional.of(all ? new Target.All() : new Target.Pid(pid));
    }

    /** A word of digits is a pid, anything else a name. */
    static Target nameOrPid(String word) {
        if (!word.isEmpty() && word.length() <= 9 && word.chars().allMatch(c -> c >= '0' && c <= '9')) {
            return new Target.Pid(Integer.parseInt(word));
        }
        return new Target.Name(word);
    }
}
