package io.stasis.engine.resource.socket;

import io.stasis.image.model.OpenDescription.SocketOption;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.net.Sockets;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * What setsockopt(2) has set: socket(7), tcp(7), ip(7), ipv6(7). Every option that the socket answers is kept; at a restart
 * those are set in which the new socket differs.
 */
final class SocketOptions {
    private static final int IPPROTO_IP = 0;
    private static final int IPPROTO_TCP = 6;
    private static final int IPPROTO_UDP = 17;
    private static final int IPPROTO_IPV6 = 41;
    static final int SO_REUSEADDR = 2;
    private static final int SO_SNDBUF = 7;
    private static final int SO_RCVBUF = 8;
    private static final int SO_REUSEPORT = 15;
    private static final int SO_BINDTODEVICE = 25;
    private static final int SO_SNDBUFFORCE = 32;
    private static final int SO_RCVBUFFORCE = 33;
    private static final int SO_MARK = 36;
    private static final int SO_BUF_LOCK = 72;
    private static final int SNDBUF_LOCK = 1;
    private static final int RCVBUF_LOCK = 2;
    private static final int IPV6_V6ONLY = 26;
    private static final int TCP_CONGESTION = 13;

    /** By level, in the order in which they are set. The numbers are those of the headers under /usr/include. */
    private static final Map<Integer, int[]> NAMES = Map.of(
            Sockets.SOL_SOCKET,
            new int[] {
                SO_REUSEADDR,
                SO_REUSEPORT,
                SO_BINDTODEVICE,
                SO_MARK,
                SO_SNDBUF,
                SO_RCVBUF,
                1, // SO_DEBUG
                5, // SO_DONTROUTE
                6, // SO_BROADCAST
                9, // SO_KEEPALIVE
                10, // SO_OOBINLINE
                11, // SO_NO_CHECK
                12, // SO_PRIORITY
                13, // SO_LINGER
                16, // SO_PASSCRED
                18, // SO_RCVLOWAT
                20, // SO_RCVTIMEO
                21, // SO_SNDTIMEO
                29, // SO_TIMESTAMP
                34, // SO_PASSSEC
                35, // SO_TIMESTAMPNS
                37, // SO_TIMESTAMPING
                40, // SO_RXQ_OVFL
                41, // SO_WIFI_STATUS
                Sockets.SO_PEEK_OFF,
                43, // SO_NOFCS
                45, // SO_SELECT_ERR_QUEUE
                46, // SO_BUSY_POLL
                47, // SO_MAX_PACING_RATE
                60, // SO_ZEROCOPY
                69, // SO_PREFER_BUSY_POLL
                76, // SO_PASSPIDFD
            },
            IPPROTO_TCP,
            new int[] {
                1, // TCP_NODELAY
                3, // TCP_CORK
                4, // TCP_KEEPIDLE
                5, // TCP_KEEPINTVL
                6, // TCP_KEEPCNT
                7, // TCP_SYNCNT
                8, // TCP_LINGER2
                9, // TCP_DEFER_ACCEPT
                10, // TCP_WINDOW_CLAMP
                TCP_CONGESTION,
                16, // TCP_THIN_LINEAR_TIMEOUTS
                18, // TCP_USER_TIMEOUT
                25, // TCP_NOTSENT_LOWAT
                28, // TCP_SAVE_SYN
                30, // TCP_FASTOPEN_CONNECT
                34, // TCP_FASTOPEN_NO_COOKIE
                36, // TCP_INQ
            },
            IPPROTO_UDP,
            new int[] {
                1, // UDP_CORK
                101, // UDP_NO_CHECK6_TX
                102, // UDP_NO_CHECK6_RX
                103, // UDP_SEGMENT
                104, // UDP_GRO
            },
            IPPROTO_IP,
            new int[] {
                1, // IP_TOS
                2, // IP_TTL
                3, // IP_HDRINCL
                5, // IP_ROUTER_ALERT
                7, // IP_RETOPTS
                8, // IP_PKTINFO
                10, // IP_MTU_DISCOVER
                11, // IP_RECVERR
                12, // IP_RECVTTL
                13, // IP_RECVTOS
                15, // IP_FREEBIND
                19, // IP_TRANSPARENT
                20, // IP_RECVORIGDSTADDR
                21, // IP_MINTTL
                22, // IP_NODEFRAG
                24, // IP_BIND_ADDRESS_NO_PORT
                33, // IP_MULTICAST_TTL
                34, // IP_MULTICAST_LOOP
                49, // IP_MULTICAST_ALL
                50, // IP_UNICAST_IF
                51, // IP_LOCAL_PORT_RANGE
            },
            IPPROTO_IPV6,
            new int[] {
                IPV6_V6ONLY,
                16, // IPV6_UNICAST_HOPS
                18, // IPV6_MULTICAST_HOPS
                19, // IPV6_MULTICAST_LOOP
                23, // IPV6_MTU_DISCOVER
                25, // IPV6_RECVERR
                29, // IPV6_MULTICAST_ALL
                49, // IPV6_RECVPKTINFO
                51, // IPV6_RECVHOPLIMIT
                66, // IPV6_RECVTCLASS
                67, // IPV6_TCLASS
                73, // IPV6_MINHOPCOUNT
                75, // IPV6_TRANSPARENT
                78, // IPV6_FREEBIND
            });

    /** What bind(2), connect(2) and listen(2) look at, and so must be set before. */
    private static final Set<List<Integer>> EARLY = Set.of(
            List.of(Sockets.SOL_SOCKET, SO_REUSEPORT),
            List.of(Sockets.SOL_SOCKET, SO_BINDTODEVICE),
            List.of(Sockets.SOL_SOCKET, SO_MARK),
            List.of(IPPROTO_IP, 15),
            List.of(IPPROTO_IP, 19),
            List.of(IPPROTO_IP, 24),
            List.of(IPPROTO_IPV6, IPV6_V6ONLY),
            List.of(IPPROTO_IPV6, 75),
            List.of(IPPROTO_IPV6, 78));

    private SocketOptions() {}

    /** The options of a socket of this family (AF_UNIX, ...) and protocol (IPPROTO_TCP, ...). */
    static List<SocketOption> capture(Fd socket, int family, int protocol) {
        List<SocketOption> options = new ArrayList<>();
        capture(socket, Sockets.SOL_SOCKET, options);
        if (family == Sockets.AF_INET || family == Sockets.AF_INET6) {
            capture(socket, IPPROTO_IP, options);
            if (family == Sockets.AF_INET6) {
                capture(socket, IPPROTO_IPV6, options);
            }
            if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) {
                capture(socket, protocol, options);
            }
        }
        return options;
    }

    private static void capture(Fd socket, int level, List<SocketOption> options) {
        int locked = Sockets.intOption(socket, Sockets.SOL_SOCKET, SO_BUF_LOCK, SNDBUF_LOCK | RCVBUF_LOCK);
        for (int name : NAMES.get(level)) {
            boolean automatic = level == Sockets.SOL_SOCKET
                    && (name == SO_SNDBUF && (locked & SNDBUF_LOCK) == 0
                            || name == SO_RCVBUF && (locked & RCVBUF_LOCK) == 0);
            if (!automatic) {
                Sockets.option(socket, level, name)
                        .ifPresent(value -> options.add(new SocketOption(level, name, value)));
            }
        }
    }

    static boolean isEarly(SocketOption option) {
        return EARLY.contains(List.of(option.level(), option.name()));
    }

    /**
     * Sets what differs.
     *
     * @param what the socket, for the error
     * @throws KernelException when the kernel refuses one
     */
    static void restore(Fd socket, List<SocketOption> options, String what) {
        for (SocketOption option : options) {
            if (option.level() == IPPROTO_IPV6 && option.name() == IPV6_V6ONLY) {
                continue; // set before bind(2), which settles it: an end of a connection has it without having asked
            }
            Optional<byte[]> now = Sockets.option(socket, option.level(), option.name());
            if (now.isEmpty() || !Arrays.equals(now.get(), option.value())) {
                long result = set(socket, option);
                if (Libc.isError(result)) {
                    throw new KernelException(
                            "set option " + option.name() + " of level " + option.level() + " of " + what,
                            (int) -result);
                }
            }
        }
    }

    private static long set(Fd socket, SocketOption option) {
        boolean buffer = option.level() == Sockets.SOL_SOCKET
                && (option.name() == SO_SNDBUF || option.name() == SO_RCVBUF)
                && option.value().length == 4;
        if (!buffer) {
            return Sockets.setOption(socket, option.level(), option.name(), option.value());
        }
        // The kernel doubles what it is given, and tells what it made of it.
        int half =
                ByteBuffer.wrap(option.value()).order(ByteOrder.nativeOrder()).getInt() / 2;
        int forced = option.name() == SO_SNDBUF ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
        long result = Sockets.setOption(socket, Sockets.SOL_SOCKET, forced, half);
        return result == -Errno.EPERM ? Sockets.setOption(socket, Sockets.SOL_SOCKET, option.name(), half) : result;
    }
}
