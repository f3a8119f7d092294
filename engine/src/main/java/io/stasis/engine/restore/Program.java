package io.stasis.engine.restore;

import io.stasis.linux.ptrace.CallTable;
import java.util.ArrayList;
import java.util.List;

/** System calls of one process in order, cut into tables that fit into the work area. */
final class Program {
    private final int room;
    private final List<CallTable> tables = new ArrayList<>();
    private CallTable current = new CallTable();

    Program(int room) {
        this.room = room / 2; // the other half is for whatever one caller adds before it asks again
    }

    /** The table to add the next few calls to; calls that forward results to each other go into one table. */
    CallTable calls() {
        if (current.bytes() > room) {
            tables.add(current);
            current = new CallTable();
        }
        return current;
    }

    List<CallTable> tables() {
        List<CallTable> all = new ArrayList<>(tables);
        if (!current.isEmpty()) {
            all.add(current);
        }
        return all;
    }
}
