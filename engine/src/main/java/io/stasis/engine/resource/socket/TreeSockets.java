package io.stasis.engine.resource.socket;

import io.stasis.engine.resource.Descriptor;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Capability;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.net.Sockets;
import io.stasis.linux.net.UnixDiag;
import io.stasis.linux.net.UnixDiag.UnixEntry;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.proc.ProcessScan;
import io.stasis.linux.proc.SystemInfo;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** The sockets that the processes of a tree hold, and whose ends they are. */
public final class TreeSockets {
    private static final String LINK = "socket:[";
    private static final int LAST_STANDARD = 2;

    /**
     * One socket of the tree.
     *
     * @param family AF_UNIX and the like, -1 when it could not be looked at
     * @param local address of this end
     * @param remote address of the other end, null when it is not connected
     */
    record TreeSocket(int family, int type, int protocol, Address local, Address remote) {}

    private final Set<Integer> treePids;
    private final Set<Integer> read = new HashSet<>();
    /** A descriptor that leads to it, by inode. */
    private final Map<Long, int[]> descriptors = new HashMap<>();

    private final Map<Long, Set<Integer>> holders = new HashMap<>();
    private final Map<Long, TreeSocket> sockets = new HashMap<>();
    private Map<Integer, UnixEntry> unix;
    private Set<Long> heldOutside;

    /** @param treePids processes of the tree, which may grow */
    public TreeSockets(Set<Integer> treePids) {
        this.treePids = treePids;
    }

    /** Forgets what was read: the tree may have run meanwhile. */
    public void refresh() {
        read.clear();
        descriptors.clear();
        holders.clear();
        sockets.clear();
        unix = null;
        heldOutside = null;
    }

    private void readProcesses() {
        for (int pid : treePids) {
            if (read.add(pid)) {
                readProcess(pid);
            }
        }
    }

    private void readProcess(int pid) {
        forEachSocket(pid, (inode, fd) -> {
            descriptors.merge(inode, new int[] {pid, fd}, (old, now) -> now[1] < old[1] ? now : old);
            holders.computeIfAbsent(inode, key -> new TreeSet<>()).add(pid);
        });
    }

    private static void forEachSocket(int pid, BiConsumer<Long, Integer> use) {
        int[] table;
        try {
            table = FdTable.list(new Pid(pid));
        } catch (NoSuchProcessException | KernelException e) {
            return; // it has ended, or is another user's
        }
        for (int fd : table) {
            try {
                String link = FdTable.link(new Pid(pid), fd);
                if (link.startsWith(LINK)) {
                    use.accept(Long.parseLong(link.substring(LINK.length(), link.length() - 1)), fd);
                }
            } catch (NoSuchProcessException | KernelException e) {
                // Closed meanwhile.
            }
        }
    }

    boolean holds(long inode) {
        readProcesses();
        return descriptors.containsKey(inode);
    }

    /**
     * Whether somebody outside the tree holds it. A socket that nobody holds is on its way through another socket. Other
     * users' processes cannot be looked into without CAP_SYS_PTRACE: what nobody seems to hold counts as theirs when it is
     * the other end of a standard descriptor, and else is looked for in the queues of the frozen tree.
     *
     * @param end inode of the tree's end
     */
    boolean isHeldOutside(long inode, long end) {
        if (heldOutside == null) {
            heldOutside = new HashSet<>();
            for (int pid : ProcessScan.all()) {
                if (!treePids.contains(pid) && pid != UnixQueues.OWN_PID) {
                    forEachSocket(pid, (socket, fd) -> heldOutside.add(socket));
                }
            }
        }
        return heldOutside.contains(inode)
                || standardRole(end) >= 0 && !SystemInfo.hasCapability(Capability.CAP_SYS_PTRACE);
    }

    Set<Integer> holders(long inode) {
        readProcesses();
        return holders.getOrDefault(inode, Set.of());
    }

    /** What the kernel tells of a Unix socket; empty for others. */
    Optional<UnixEntry> unix(long inode) {
        if (unix == null) {
            unix = UnixDiag.dump();
        }
        return Optional.ofNullable(unix.get((int) inode));
    }

    /** The listening socket of the tree in whose queue the connection of this one waits. */
    Optional<UnixEntry> listenerOf(long inode) {
        unix(inode);
        for (UnixEntry entry : unix.values()) {
            for (int pending : entry.pending()) {
                if (pending == (int) inode && holds(Integer.toUnsignedLong(entry.inode()))) {
                    return Optional.of(entry);
                }
            }
        }
        return Optional.empty();
    }

    /** Family, type and addresses of a descriptor's socket. */
    TreeSocket socket(Descriptor descriptor) {
        return sockets.computeIfAbsent(descriptor.status().ino(), inode -> look(descriptor.pid(), descriptor.fd()));
    }

    private static TreeSocket look(int pid, int descriptor) {
        return withCopy(
                        pid,
                        descriptor,
                        fd -> new TreeSocket(
                                Sockets.intOption(fd, Sockets.SOL_SOCKET, Sockets.SO_DOMAIN, -1),
                                Sockets.intOption(fd, Sockets.SOL_SOCKET, Sockets.SO_TYPE, -1),
                                Sockets.intOption(fd, Sockets.SOL_SOCKET, Sockets.SO_PROTOCOL, -1),
                                new Address(Sockets.name(fd)),
                                Sockets.peerName(fd).map(Address::new).orElse(null)))
                .orElse(new TreeSocket(-1, -1, -1, new Address(new byte[0]), null));
    }

    /** Looks at a socket through a copy of the descriptor; empty when it is gone. */
    static <T> Optional<T> withCopy(int pid, int descriptor, Function<Fd, T> look) {
        try (Fd pidfd = PidFd.open(new Pid(pid));
                Fd fd = PidFd.getFd(pidfd, descriptor)) {
            return Optional.of(look.apply(fd));
        } catch (KernelException e) {
            return Optional.empty();
        }
    }

    /** The socket of the tree at the other end of an internet connection. */
    Optional<Long> otherEnd(TreeSocket socket) {
        readProcesses();
        for (Map.Entry<Long, int[]> entry : descriptors.entrySet()) {
            TreeSocket other =
                    sockets.computeIfAbsent(entry.getKey(), inode -> look(entry.getValue()[0], entry.getValue()[1]));
            if (other.protocol == socket.protocol
                    && other.remote != null
                    && socket.remote != null
                    && other.local.isSameAs(socket.remote)
                    && other.remote.isSameAs(socket.local)
                    && (other != socket || socket.local.isSameAs(socket.remote))) {
                return Optional.of(entry.getKey());
            }
        }
        return Optional.empty();
    }

    /** A descriptor of the tree that leads to this socket: pid and number. */
    int[] descriptor(long inode) {
        readProcesses();
        return descriptors.get(inode);
    }

    /** Whether a TCP socket of the tree that listens gets connections to this address. */
    boolean listens(Address address) {
        readProcesses();
        descriptors.forEach((inode, at) -> sockets.computeIfAbsent(inode, key -> look(at[0], at[1])));
        return sockets.values().stream()
                .anyMatch(socket ->
                        socket.type == Sockets.SOCK_STREAM && socket.remote == null && socket.local.covers(address));
    }

    /** Whether the address is one of this host. */
    boolean isLocal(Address address) {
        try {
            InetAddress host = InetAddress.getByAddress(address.host());
            return host.isLoopbackAddress() || NetworkInterface.getByInetAddress(host) != null;
        } catch (UnknownHostException | SocketException e) {
            return false;
        }
    }

    /** Whether it is connected, and to nobody in the tree. */
    public boolean leadsOutside(Descriptor descriptor) {
        long inode = descriptor.status().ino();
        Optional<UnixEntry> entry = unix(inode);
        if (entry.isPresent()) {
            return UnixSockets.leadsOutside(entry.get(), this);
        }
        TreeSocket socket = socket(descriptor);
        return socket.family != Sockets.AF_UNIX
                && socket.type == Sockets.SOCK_STREAM
                && socket.remote != null
                && otherEnd(socket).isEmpty();
    }

    /** The standard descriptor of some process of the tree that leads to this socket; -1 when there is none. */
    public int standardRole(Descriptor descriptor) {
        return standardRole(descriptor.status().ino());
    }

    private int standardRole(long inode) {
        readProcesses();
        int[] lowest = descriptors.get(inode);
        return lowest != null && lowest[1] <= LAST_STANDARD ? lowest[1] : -1;
    }
}
