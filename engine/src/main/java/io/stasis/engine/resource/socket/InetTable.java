package io.stasis.engine.resource.socket;

import io.stasis.linux.net.Sockets;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;

/** The TCP sockets of this network namespace, from /proc/net/tcp and tcp6: see proc_pid_net(5). */
final class InetTable {
    private static final int WORDS = 10;
    private static final int TIME_WAIT = 6;

    /**
     * One line.
     *
     * @param state TCP_ESTABLISHED (1) and so on
     * @param unread bytes received that nobody read yet; for a listening socket the connections that wait
     * @param inode 0 for one that no process holds: closed, or not accepted yet
     */
    record Row(Address local, Address remote, int state, long unread, long inode) {}

    private final List<Row> rows = new ArrayList<>();

    InetTable() {
        read("tcp");
        read("tcp6");
    }

    private void read(String table) {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/net/" + table), StandardCharsets.ISO_8859_1)) {
                String[] words = line.strip().split("\\s+");
                if (words.length >= WORDS && words[0].endsWith(":")) {
                    rows.add(new Row(
                            address(words[1]),
                            address(words[2]),
                            Integer.parseInt(words[3], 16),
                            Long.parseLong(words[4].substring(words[4].indexOf(':') + 1), 16),
                            Long.parseLong(words[9])));
                }
            }
        } catch (IOException e) {
            // No such protocol here.
        }
    }

    /** "0100007F:1F90" is 127.0.0.1:8080: words of the address in the host's byte order, the port in plain. */
    private static Address address(String text) {
        int colon = text.indexOf(':');
        byte[] host = HexFormat.of().parseHex(text.substring(0, colon));
        ByteBuffer words = ByteBuffer.wrap(host).order(ByteOrder.BIG_ENDIAN);
        boolean inet6 = host.length == 16;
        ByteBuffer bytes = ByteBuffer.allocate(inet6 ? 28 : 16).order(ByteOrder.nativeOrder());
        bytes.putShort(0, (short) (inet6 ? Sockets.AF_INET6 : Sockets.AF_INET));
        for (int i = 0; i < host.length; i += 4) {
            bytes.putInt((inet6 ? 8 : 4) + i, words.getInt(i));
        }
        bytes.order(ByteOrder.BIG_ENDIAN).putShort(2, (short) Integer.parseInt(text.substring(colon + 1), 16));
        return new Address(bytes.array());
    }

    /** The other end of a connection when it is on this host. */
    Optional<Row> otherEnd(Address local, Address remote) {
        return rows.stream()
                .filter(row -> row.local.isSameAs(remote) && row.remote.isSameAs(local))
                .findFirst();
    }

    /** Whether an address is taken by nothing but connections that have ended and wait for their last packets to die. */
    boolean isOnlyWaiting(Address local) {
        return rows.stream()
                .filter(row -> row.local.port() == local.port() && row.state != TIME_WAIT)
                .noneMatch(row -> row.local.isSameAs(local) || row.local.isWildcard() || local.isWildcard());
    }

    /** The line of the socket with this inode. */
    Optional<Row> byInode(long inode) {
        return rows.stream().filter(row -> row.inode == inode).findFirst();
    }
}
