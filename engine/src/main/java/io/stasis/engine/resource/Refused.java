package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Names what no kind claims. */
final class Refused {
    private static final List<String> SOCKET_TABLES =
            List.of("tcp", "tcp6", "udp", "udp6", "unix", "raw", "raw6", "icmp", "netlink", "packet");

    private Refused() {}

    static Problem problem(Descriptor descriptor) {
        String link = descriptor.link();
        if (link.startsWith("socket:")) {
            return DescriptorKind.problem(
                    descriptor, socket(descriptor), "sockets are not supported", "close it before the checkpoint");
        }
        if (link.startsWith("anon_inode:")) {
            String name =
                    link.substring("anon_inode:".length()).replace("[", "").replace("]", "");
            return DescriptorKind.problem(
                    descriptor, name + " descriptor", "it is not supported", "close it before the checkpoint");
        }
        String what =
                descriptor.status().isCharacterDevice() || descriptor.status().isBlockDevice()
                        ? "device " + link
                        : link;
        return DescriptorKind.problem(descriptor, what, "it is not supported", "close it before the checkpoint");
    }

    /** Family and addresses of a socket, from the tables of its network namespace. */
    private static String socket(Descriptor descriptor) {
        String inode = Long.toString(descriptor.status().ino());
        for (String table : SOCKET_TABLES) {
            String line = find(Path.of("/proc/" + descriptor.pid() + "/net/" + table), inode);
            if (line != null) {
                return describe(table, line.strip().split("\\s+")) + " (" + descriptor.link() + ")";
            }
        }
        return descriptor.link();
    }

    private static String find(Path table, String inode) {
        try {
            for (String line : Files.readAllLines(table, StandardCharsets.ISO_8859_1)) {
                if ((" " + line + " ").contains(" " + inode + " ")) {
                    return line;
                }
            }
        } catch (IOException e) {
            // No such protocol here: the socket is none of its.
        }
        return null;
    }

    private static String describe(String table, String[] fields) {
        if (table.equals("unix")) {
            return "Unix socket" + (fields.length > 7 ? " " + fields[7] : "");
        }
        boolean addresses = (table.startsWith("tcp") || table.startsWith("udp")) && fields.length > 2;
        String name = table.toUpperCase(java.util.Locale.ROOT) + " socket";
        return addresses && fields[1].length() == 13
                ? name + " " + address(fields[1]) + " to " + address(fields[2])
                : name;
    }

    /** "0100007F:1F90" is 127.0.0.1:8080: the address in the host's byte order, the port in plain. */
    private static String address(String hex) {
        long ip = Long.parseLong(hex.substring(0, 8), 16);
        int port = Integer.parseInt(hex.substring(9), 16);
        return (ip & 0xff) + "." + (ip >> 8 & 0xff) + "." + (ip >> 16 & 0xff) + "." + (ip >> 24 & 0xff) + ":" + port;
    }
}
