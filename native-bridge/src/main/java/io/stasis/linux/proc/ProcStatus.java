package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import java.util.Optional;

/**
 * {@code /proc/P/status}, or that of one thread, see proc_pid_status(5). Everybody may read it.
 *
 * <p>Signal sets hold signal N in bit N-1. A zombie has no memory lines and keeps the rest.
 *
 * @param umask -1 when the process has no file system state any more (a zombie)
 * @param uids real, effective, saved, file system
 * @param gids the same of groups
 * @param nspid thread ids from the outermost pid namespace that we see to the innermost; the last is what the thread
 *     itself sees
 * @param nstgid process ids, likewise
 * @param nspgid process group, likewise
 * @param nssid session, likewise
 * @param seccomp 0 off, 1 strict, 2 filter
 */
public record ProcStatus(
        String name,
        int umask,
        int tgid,
        int ppid,
        int tracerPid,
        int[] uids,
        int[] gids,
        int[] groups,
        int[] nstgid,
        int[] nspid,
        int[] nspgid,
        int[] nssid,
        int threads,
        long vmRssKb,
        long vmSwapKb,
        long vmLckKb,
        long sigPnd,
        long shdPnd,
        long sigBlk,
        long sigIgn,
        long sigCgt,
        long capInh,
        long capPrm,
        long capEff,
        long capBnd,
        long capAmb,
        boolean noNewPrivs,
        int seccomp,
        int seccompFilters,
        int fdSize) {

    /** @throws NoSuchProcessException when it is gone */
    public static ProcStatus read(Pid pid) {
        return parse(Procfs.read(pid, Procfs.file(pid, "status")));
    }

    /** Empty when the process is gone. */
    public static Optional<ProcStatus> find(Pid pid) {
        return Procfs.tryRead(Procfs.file(pid, "status")) < 0
                ? Optional.empty()
                : Optional.of(parse(Procfs.lastText()));
    }

    /** Empty when the thread is gone. */
    public static Optional<ProcStatus> find(Pid pid, Tid tid) {
        return Procfs.tryRead(Procfs.file(pid, tid, "status")) < 0
                ? Optional.empty()
                : Optional.of(parse(Procfs.lastText()));
    }

    public static ProcStatus read(Pid pid, Tid tid) {
        return parse(Procfs.read(pid, Procfs.file(pid, tid, "status")));
    }

    /** Whether capability {@code number} is in the effective set. */
    public boolean hasCapability(int number) {
        return (capEff >>> number & 1) != 0;
    }

    static ProcStatus parse(ProcText text) {
        String name = "";
        int umask = -1;
        int tgid = 0;
        int ppid = 0;
        int tracerPid = 0;
        int[] uids = {};
        int[] gids = {};
        int[] groups = {};
        int[] nstgid = {};
        int[] nspid = {};
        int[] nspgid = {};
        int[] nssid = {};
        int threads = 0;
        long rss = 0;
        long swap = 0;
        long locked = 0;
        long[] mask = new long[10];
        boolean noNewPrivs = false;
        int seccomp = 0;
        int filters = 0;
        int fdSize = 0;
        while (!text.atEnd()) {
            switch (text.key()) {
                case "Name" -> name = text.restOfLine();
                case "Umask" -> umask = text.octal();
                case "Tgid" -> tgid = text.integer();
                case "PPid" -> ppid = text.integer();
                case "TracerPid" -> tracerPid = text.integer();
                case "Uid" -> uids = text.integers();
                case "Gid" -> gids = text.integers();
                case "FDSize" -> fdSize = text.integer();
                case "Groups" -> groups = text.integers();
                case "NStgid" -> nstgid = text.integers();
                case "NSpid" -> nspid = text.integers();
                case "NSpgid" -> nspgid = text.integers();
                case "NSsid" -> nssid = text.integers();
                case "VmRSS" -> rss = text.decimal();
                case "VmSwap" -> swap = text.decimal();
                case "VmLck" -> locked = text.decimal();
                case "Threads" -> threads = text.integer();
                case "SigPnd" -> mask[0] = text.hex();
                case "ShdPnd" -> mask[1] = text.hex();
                case "SigBlk" -> mask[2] = text.hex();
                case "SigIgn" -> mask[3] = text.hex();
                case "SigCgt" -> mask[4] = text.hex();
                case "CapInh" -> mask[5] = text.hex();
                case "CapPrm" -> mask[6] = text.hex();
                case "CapEff" -> mask[7] = text.hex();
                case "CapBnd" -> mask[8] = text.hex();
                case "CapAmb" -> mask[9] = text.hex();
                case "NoNewPrivs" -> noNewPrivs = text.integer() != 0;
                case "Seccomp" -> seccomp = text.integer();
                case "Seccomp_filters" -> filters = text.integer();
                default -> {
                    // sizes, cpu sets and counters that nobody needs
                }
            }
            if (text.position > 0 && text.bytes[text.position - 1] != '\n') {
                text.skipLine();
            }
        }
        return new ProcStatus(
                name,
                umask,
                tgid,
                ppid,
                tracerPid,
                uids,
                gids,
                groups,
                nstgid,
                nspid,
                nspgid,
                nssid,
                threads,
                rss,
                swap,
                locked,
                mask[0],
                mask[1],
                mask[2],
                mask[3],
                mask[4],
                mask[5],
                mask[6],
                mask[7],
                mask[8],
                mask[9],
                noNewPrivs,
                seccomp,
                filters,
                fdSize);
    }
}
