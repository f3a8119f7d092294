package io.stasis.tools.images;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.stasis.client.Json;
import io.stasis.image.ImageDirectory;
import io.stasis.image.Manifest;
import io.stasis.image.RecordFile;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.MemoryImage.Backing;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.image.model.OpenDescription;
import io.stasis.image.model.ProcessImage;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.output.Text;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis inspect}. */
@Command(
        name = "inspect",
        description = "Shows what an image holds: processes, threads, memory, descriptors, pipes with their contents.")
public final class InspectCommand extends StasisCommand {
    private static final ObjectMapper JACKSON = new ObjectMapper();

    @Parameters(paramLabel = "DIR", description = "Image directory.")
    private Path directory;

    @Option(names = "--generation", paramLabel = "N", description = "This generation instead of the newest.")
    private int generation;

    @Option(names = "--json", description = "Report as JSON.")
    private boolean json;

    @Override
    public Integer call() {
        ImageDirectory images = ImageDirectory.open(directory);
        ImageDirectory.Generation chosen = generation > 0 ? images.generation(generation) : images.latest();
        Manifest manifest = chosen.manifest();
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("manifest", JACKSON.convertValue(manifest, new TypeReference<Map<String, Object>>() {}));
        List<Map<String, Object>> hosts = new ArrayList<>();
        for (Manifest.HostEntry host : manifest.hosts()) {
            hosts.add(host(chosen.path().resolve(host.name()), host.name()));
        }
        report.put("hosts", hosts);
        if (json) {
            System.out.println(Json.write(report));
        } else {
            print(manifest, hosts);
        }
        return 0;
    }

    private static Map<String, Object> host(Path path, String name) {
        ComputationImage tree = RecordFile.read(path.resolve("tree.record"), ComputationImage.class);
        List<Map<String, Object>> processes = new ArrayList<>();
        for (int pid : tree.processes()) {
            processes.add(process(RecordFile.read(path.resolve(pid + ".process"), ProcessImage.class), tree));
        }
        Map<String, Object> host = new LinkedHashMap<>();
        host.put("name", name);
        host.put("root", tree.root());
        host.put("processes", processes);
        host.put("zombies", tree.zombies().stream().map(z -> z.identity().pid()).toList());
        host.put(
                "pipes",
                tree.pipes().stream()
                        .map(p -> Map.<String, Object>of(
                                "path",
                                p.path() == null ? "" : p.path().path(),
                                "capacity",
                                p.capacity(),
                                "bytes",
                                p.contents().length))
                        .toList());
        host.put(
                "sharedMemory", tree.sharedObjects().stream().map(o -> o.size()).toList());
        return host;
    }

    private static Map<String, Object> process(ProcessImage process, ComputationImage tree) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("pid", process.identity().pid());
        map.put("parent", process.identity().parent());
        map.put("group", process.identity().group());
        map.put("session", process.identity().session());
        map.put("name", process.identity().name());
        map.put("executable", process.memory().executable().path());
        map.put("workingDirectory", process.filesystem().workingDirectory().path());
        map.put(
                "threads",
                process.threads().stream()
                        .map(t -> Map.<String, Object>of("tid", t.tid(), "name", t.name()))
                        .toList());
        map.put("memory", memory(process));
        List<Map<String, Object>> descriptors = new ArrayList<>();
        for (DescriptorEntry entry : process.descriptors()) {
            Map<String, Object> descriptor = new LinkedHashMap<>();
            descriptor.put("fd", entry.fd());
            descriptor.put("description", entry.description());
            descriptor.put("what", describe(tree.descriptions().get(entry.description()), tree));
            descriptors.add(descriptor);
        }
        map.put("descriptors", descriptors);
        return map;
    }

    private static Map<String, Object> memory(ProcessImage process) {
        Map<String, Object> byKind = new TreeMap<>();
        for (Mapping mapping : process.memory().mappings()) {
            String kind = switch (mapping.backing()) {
                case Backing.Anonymous() -> "anonymous";
                case Backing.MappedFile file -> mapping.shared() ? "shared file" : "private file";
                case Backing.SharedMemory memory -> "shared memory";
                case Backing.MappedNamelessFile file ->
                    mapping.shared() ? "shared deleted file" : "private deleted file";
                case Backing.Detached() -> "private deleted file";
                case Backing.Kernel kernel -> "kernel";
            };
            byKind.merge(kind, mapping.length(), (a, b) -> (Long) a + (Long) b);
        }
        return byKind;
    }

    private static String describe(OpenDescription description, ComputationImage tree) {
        return switch (description) {
            case OpenDescription.OpenFile(int flags, var file, long offset) -> file.path() + " at " + offset;
            case OpenDescription.OpenRemovedDirectory(int flags, var directory) ->
                "removed directory " + directory.path();
            case OpenDescription.OpenNamelessFile(int flags, int file, long offset) -> {
                var nameless = tree.namelessFiles().get(file);
                yield (nameless.memory() ? "memory file " : "deleted file ")
                        + nameless.file().path() + " at " + offset;
            }
            case OpenDescription.PipeEnd(int flags, int pipe) ->
                ((flags & 3) == 1 ? "writing" : "reading") + " end of "
                        + (tree.pipes().get(pipe).path() == null
                                ? "pipe " + pipe
                                : "fifo " + tree.pipes().get(pipe).path().path())
                        + " ("
                        + tree.pipes().get(pipe).contents().length + " bytes in flight)";
            case OpenDescription.Terminal(int flags, int terminal) ->
                "terminal " + tree.terminals().get(terminal).path();
            case OpenDescription.EventPoll(int flags, int owner, var interests) ->
                "epoll of " + interests.size() + " descriptors";
            case OpenDescription.EventCounter(int flags, long count, boolean semaphore) -> "eventfd at " + count;
            case OpenDescription.SignalQueue queue -> "signalfd of signals " + signals(queue.mask());
            case OpenDescription.TimerDescriptor timer -> timer(timer);
            case OpenDescription.PosixMessageQueue queue ->
                (queue.removed() ? "removed message queue " : "message queue ") + queue.name();
            case OpenDescription.FileWatcher(int flags, var watches) ->
                "inotify of "
                        + watches.stream().map(OpenDescription.FileWatch::path).toList();
            case OpenDescription.ProcessDescriptor(int flags, int pid) -> "pidfd of process " + pid;
            case OpenDescription.UnixSocket socket -> unixSocket(socket);
            case OpenDescription.PseudoTerminal.Master master -> "master of pseudo-terminal " + master.number();
            case OpenDescription.PseudoTerminal.Slave slave -> "pseudo-terminal /dev/pts/" + slave.number();
            case OpenDescription.InetSocket socket -> inetSocket(socket);
            case OpenDescription.External(int flags, int role, String what) ->
                what + ", the outside's descriptor " + role;
        };
    }

    private static List<Integer> signals(long mask) {
        return java.util.stream.IntStream.rangeClosed(1, Long.SIZE)
                .filter(signal -> (mask & 1L << (signal - 1)) != 0)
                .boxed()
                .toList();
    }

    private static String timer(OpenDescription.TimerDescriptor timer) {
        return "timerfd, "
                + (timer.valueNanos() == 0 ? "disarmed" : Text.time(timer.valueNanos()) + " left")
                + (timer.intervalNanos() == 0 ? "" : ", every " + Text.time(timer.intervalNanos()))
                + (timer.ticks() == 0 ? "" : ", expired " + Text.count((int) timer.ticks(), "time", "times"));
    }

    private static String unixSocket(OpenDescription.UnixSocket socket) {
        String type = switch (socket.type()) {
            case 1 -> "stream";
            case 2 -> "datagram";
            default -> "packet";
        };
        String name = new String(socket.name(), StandardCharsets.UTF_8).replace('\0', '@');
        long bytes = socket.queue().stream().mapToLong(m -> m.data().length).sum();
        return "Unix " + type + " socket " + socket.id() + (name.isEmpty() ? "" : " " + name)
                + (socket.backlog() >= 0 ? ", listening" : "")
                + (socket.peer() != 0 ? ", connected to " + socket.peer() : "") + " (" + bytes + " bytes in flight)";
    }

    private static String inetSocket(OpenDescription.InetSocket socket) {
        String protocol = switch (socket.protocol()) {
            case 6 -> "TCP";
            case 17 -> "UDP";
            default -> "IP protocol " + socket.protocol();
        };
        long bytes = socket.unsent().length
                + socket.received().stream().mapToLong(m -> m.data().length).sum();
        return protocol + " socket " + socket.id() + " " + address(socket.local())
                + (socket.backlog() >= 0 ? ", listening" : "")
                + (socket.remote().length > 0 ? " to " + address(socket.remote()) : "") + " (" + bytes
                + " bytes in flight)";
    }

    /** A sockaddr_in or sockaddr_in6 for people. */
    private static String address(byte[] bytes) {
        if (bytes.length < 16) {
            return "";
        }
        boolean inet6 = bytes.length >= 28;
        int port = Byte.toUnsignedInt(bytes[2]) << 8 | Byte.toUnsignedInt(bytes[3]);
        try {
            String host = java.net.InetAddress.getByAddress(
                            java.util.Arrays.copyOfRange(bytes, inet6 ? 8 : 4, inet6 ? 24 : 8))
                    .getHostAddress();
            return (inet6 ? "[" + host + "]" : host) + ":" + port;
        } catch (java.net.UnknownHostException e) {
            throw new IllegalStateException(e); // the length is right
        }
    }

    private static void print(Manifest manifest, List<Map<String, Object>> hosts) {
        System.out.println(manifest.computation() + ": generation " + manifest.generation() + " of "
                + manifest.createdAt() + ", " + Text.bytes(manifest.imageBytes()) + ", paused "
                + Text.time(manifest.pauseNanos()) + ", Stasis " + manifest.stasisVersion() + ", kernel "
                + manifest.kernel());
        for (Map<String, Object> host : hosts) {
            System.out.println("host " + host.get("name"));
            for (Map<String, Object> process : Json.objects(host.get("processes"))) {
                System.out.println("  process " + process.get("pid") + " \"" + process.get("name") + "\", parent "
                        + process.get("parent") + ", group " + process.get("group") + ", session "
                        + process.get("session") + ", "
                        + Text.count(Json.list(process.get("threads")).size(), "thread", "threads"));
                System.out.println("    runs " + process.get("executable") + " in " + process.get("workingDirectory"));
                Json.object(process.get("memory"))
                        .forEach((kind, bytes) ->
                                System.out.println("    memory: " + kind + " " + Text.bytes((Long) bytes)));
                for (Map<String, Object> descriptor : Json.objects(process.get("descriptors"))) {
                    System.out.println("    descriptor " + descriptor.get("fd") + ": " + descriptor.get("what"));
                }
            }
            if (!Json.list(host.get("zombies")).isEmpty()) {
                System.out.println("  zombies " + host.get("zombies"));
            }
        }
    }
}
