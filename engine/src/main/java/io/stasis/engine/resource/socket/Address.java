package io.stasis.engine.resource.socket;

import io.stasis.linux.net.Sockets;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A sockaddr: unix(7), ip(7), ipv6(7). */
record Address(byte[] bytes) {
    private static final int INET6_ADDRESS = 8;
    private static final byte[] MAPPED = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1};

    int family() {
        return bytes.length < 2
                ? 0
                : Short.toUnsignedInt(
                        ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()).getShort());
    }

    boolean isInternet() {
        return family() == Sockets.AF_INET && bytes.length >= 16 || family() == Sockets.AF_INET6 && bytes.length >= 28;
    }

    /** In the host's order; 0 for none. */
    int port() {
        return isInternet() ? Short.toUnsignedInt(ByteBuffer.wrap(bytes).getShort(2)) : 0;
    }

    /** The address without port: 4 bytes, also for an IPv4 address in the guise of an IPv6 one, or 16. */
    byte[] host() {
        if (family() == Sockets.AF_INET) {
            return Arrays.copyOfRange(bytes, 4, 8);
        }
        byte[] host = Arrays.copyOfRange(bytes, INET6_ADDRESS, INET6_ADDRESS + 16);
        return Arrays.mismatch(host, MAPPED) == MAPPED.length ? Arrays.copyOfRange(host, 12, 16) : host;
    }

    boolean isWildcard() {
        for (byte each : host()) {
            if (each != 0) {
                return false;
            }
        }
        return true;
    }

    /** Whether both mean the same host and port. */
    boolean isSameAs(Address other) {
        return isInternet() && other.isInternet() && port() == other.port() && Arrays.equals(host(), other.host());
    }

    /** Whether a socket bound here gets what is sent there. */
    boolean covers(Address other) {
        return isInternet()
                && other.isInternet()
                && port() == other.port()
                && (isWildcard() || Arrays.equals(host(), other.host()));
    }

    /** For people. */
    @Override
    public String toString() {
        if (family() == Sockets.AF_UNIX) {
            String name = new String(bytes, 2, bytes.length - 2, StandardCharsets.UTF_8).replace('\0', '@');
            return name.isEmpty() || name.charAt(0) == '@' ? name : name.replace("@", "");
        }
        if (!isInternet()) {
            return "";
        }
        try {
            String host = java.net.InetAddress.getByAddress(host()).getHostAddress();
            return (host.contains(":") ? "[" + host + "]" : host) + ":" + port();
        } catch (java.net.UnknownHostException e) {
            throw new IllegalStateException(e); // the length is 4 or 16
        }
    }
}
