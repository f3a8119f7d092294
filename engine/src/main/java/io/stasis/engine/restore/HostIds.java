package io.stasis.engine.restore;

import io.stasis.engine.EngineException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.Tasks;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** Ids of processes and threads in a pid namespace, and those that this host has for them: pid_namespaces(7). */
final class HostIds {
    private final Map<Integer, Integer> hosts = new HashMap<>();

    private HostIds() {}

    /** Of the threads of a process. */
    static HostIds ofThreads(RestoredProcess process) {
        HostIds ids = new HostIds();
        if (process.isInNamespace()) {
            for (int tid : Tasks.threads(process.host())) {
                ProcStatus.find(process.host(), new Tid(tid)).ifPresent(status -> ids.add(status, tid));
            }
        }
        return ids;
    }

    /** Of those children of {@code parent} that are in the same namespace as {@code fellow}. */
    static HostIds ofChildren(Pid parent, Pid fellow) {
        HostIds ids = new HostIds();
        Path namespace = PidNamespace.of(fellow);
        for (int child : Tasks.childrenOf(parent)) {
            ProcStatus.find(new Pid(child))
                    .filter(status -> namespace.equals(PidNamespace.of(new Pid(child))))
                    .ifPresent(status -> ids.add(status, child));
        }
        return ids;
    }

    /** Of the processes of a tree, their threads and their process groups. */
    static HostIds of(Iterable<RestoredProcess> processes) {
        HostIds all = new HostIds();
        for (RestoredProcess process : processes) {
            all.hosts.put(process.pid(), process.host().value());
            all.hosts.putAll(ofThreads(process).hosts);
            if (process.isInNamespace()) {
                all.hosts.putIfAbsent(
                        process.image().identity().group(),
                        ProcStat.read(process.host()).pgrp());
            }
        }
        return all;
    }

    private void add(ProcStatus status, int host) {
        hosts.put(inner(status), host);
    }

    /** The id that the process has in the namespace it is in. */
    static int inner(ProcStatus status) {
        return status.nspid()[status.nspid().length - 1];
    }

    /** The id of this host; the same where there is no namespace. */
    int host(int id) {
        return hosts.getOrDefault(id, id);
    }

    /** The id of this host for a process that must be in the namespace. */
    int mustHave(int id) {
        Integer host = hosts.get(id);
        if (host == null) {
            throw new EngineException(
                    EngineException.Kind.FAILED, "process " + id + " is not to be found in its pid namespace");
        }
        return host;
    }
}
