package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import java.util.Optional;

/**
 * {@code /proc/P/stat}, or that of one thread, see proc_pid_stat(5). Of a process of somebody else an ordinary user sees
 * 0 in all address fields and in {@code exitCode} (1 for startCode and endCode).
 *
 * @param comm name of the thread; it may hold blanks, parentheses and line feeds
 * @param state R, S, D, Z, T, t, X, I
 * @param startTime clock ticks since boot; together with the pid it identifies a process
 * @param startBrk where the heap begins; its end is told by brk(0) only
 * @param exitCode wait status
 * @param exitSignal signal for the parent at the end, usually SIGCHLD
 */
public record ProcStat(
        int pid,
        String comm,
        char state,
        int ppid,
        int pgrp,
        int session,
        int ttyNr,
        int tpgid,
        long flags,
        long utime,
        long stime,
        int priority,
        int nice,
        int numThreads,
        long startTime,
        long vsize,
        long rss,
        long startCode,
        long endCode,
        long startStack,
        long startData,
        long endData,
        long startBrk,
        long argStart,
        long argEnd,
        long envStart,
        long envEnd,
        int exitCode,
        int exitSignal,
        int processor,
        int rtPriority,
        int policy) {

    /** @throws NoSuchProcessException when it is gone; a zombie still has one */
    public static ProcStat read(Pid pid) {
        return parse(Procfs.read(pid, Procfs.file(pid, "stat")));
    }

    /** Empty when the process is gone. */
    public static Optional<ProcStat> find(Pid pid) {
        return Procfs.tryRead(Procfs.file(pid, "stat")) < 0 ? Optional.empty() : Optional.of(parse(Procfs.lastText()));
    }

    /** Empty when the thread is gone. */
    public static Optional<ProcStat> find(Pid pid, Tid tid) {
        return Procfs.tryRead(Procfs.file(pid, tid, "stat")) < 0
                ? Optional.empty()
                : Optional.of(parse(Procfs.lastText()));
    }

    public static ProcStat read(Pid pid, Tid tid) {
        return parse(Procfs.read(pid, Procfs.file(pid, tid, "stat")));
    }

    public boolean isZombie() {
        return state == 'Z' || state == 'X';
    }

    static ProcStat parse(ProcText text) {
        int pid = text.integer();
        // The name ends at the last parenthesis: the fields behind it hold none.
        int open = text.position + 1;
        int close = text.length - 1;
        while (close > open && text.bytes[close] != ')') {
            close--;
        }
        String comm = text.text(open + 1, close);
        text.position = close + 2;
        char state = (char) text.peek();
        text.position++;
        long[] field = new long[53];
        for (int i = 4; i <= 52; i++) {
            field[i] = text.decimal();
        }
        return new ProcStat(
                pid,
                comm,
                state,
                (int) field[4],
                (int) field[5],
                (int) field[6],
                (int) field[7],
                (int) field[8],
                field[9],
                field[14],
                field[15],
                (int) field[18],
                (int) field[19],
                (int) field[20],
                field[22],
                field[23],
                field[24],
                field[26],
                field[27],
                field[28],
                field[45],
                field[46],
                field[47],
                field[48],
                field[49],
                field[50],
                field[51],
                (int) field[52],
                (int) field[38],
                (int) field[39],
                (int) field[40],
                (int) field[41]);
    }
}
