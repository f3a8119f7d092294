package io.stasis.engine.resource.event;

import io.stasis.linux.Pid;
import io.stasis.linux.notify.FileHandles;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.Mappings;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcLinks;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Finds a path of a file that a process watches, of which the kernel tells device, inode and handle only. Root opens it
 * by its handle. An ordinary user may not, and looks where a program that watches something would have got its name
 * from: its directories, files, arguments and environment, and below its working directory.
 */
final class WatchedPaths {
    /** Files looked at below a working directory at most: some milliseconds. */
    private static final int LIMIT = 10_000;

    /** @param handle f_handle of {@code struct file_handle}, empty when the file system has none */
    record File(long device, long inode, int handleType, String handle) {
        boolean isAt(String path) {
            try {
                FileStatus status = FileStatus.ofLink(path);
                return status.exists() && status.dev() == device && status.ino() == inode;
            } catch (io.stasis.linux.KernelException e) {
                return false; // it is not for this user to look at
            }
        }
    }

    private final Map<File, String> found = new HashMap<>();

    /** A path that leads to the file now; links are not followed in its last part. */
    Optional<String> find(int pid, File file) {
        String known = found.get(file);
        if (known != null && file.isAt(known)) {
            return Optional.of(known);
        }
        Optional<String> path = byHandle(file).or(() -> search(pid, file));
        path.ifPresent(p -> found.put(file, p));
        return path;
    }

    private static Optional<String> byHandle(File file) {
        if (file.handle.isEmpty()) {
            return Optional.empty();
        }
        byte[] handle = java.util.HexFormat.of().parseHex(file.handle);
        return FileHandles.path(file.device, file.handleType, handle);
    }

    private static Optional<String> search(int number, File file) {
        Pid pid = new Pid(number);
        String directory = ProcLinks.cwd(pid).path();
        for (String path : candidates(pid, directory)) {
            for (Path p = Path.of(path); p != null; p = p.getParent()) {
                if (file.isAt(p.toString())) {
                    return Optional.of(p.toString());
                }
            }
        }
        return below(Path.of(directory), path -> file.isAt(path.toString()));
    }

    /** Absolute and normal paths that the process knows. */
    private static Set<String> candidates(Pid pid, String directory) {
        List<String> names = new ArrayList<>();
        names.add(directory);
        names.add(ProcLinks.exe(pid).path());
        for (int fd : FdTable.list(pid)) {
            names.add(FdTable.link(pid, fd));
        }
        Mappings.readMaps(pid).forEach(mapping -> names.add(mapping.path()));
        for (String argument : ProcFiles.cmdline(pid)) {
            names.add(argument);
            names.add(argument.substring(argument.indexOf('=') + 1));
        }
        String environment = new String(ProcFiles.environ(pid), StandardCharsets.UTF_8);
        for (String variable : environment.split("\0")) {
            names.addAll(List.of(variable.substring(variable.indexOf('=') + 1).split(":")));
        }
        Set<String> paths = new LinkedHashSet<>();
        for (String name : names) {
            if (name != null && !name.isEmpty() && !name.startsWith("[") && name.indexOf('\0') < 0) {
                paths.add(Path.of(directory).resolve(name).normalize().toString());
            }
        }
        return paths;
    }

    /** The first of the files below a directory that fits. */
    private static Optional<String> below(Path directory, Predicate<Path> fits) {
        Path[] result = new Path[1];
        int[] seen = new int[1];
        try {
            Files.walkFileTree(directory, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult preVisitDirectory(Path path, BasicFileAttributes attributes) {
                    return visitFile(path, attributes);
                }

                @Override
                public FileVisitResult visitFile(Path path, BasicFileAttributes attributes) {
                    if (fits.test(path)) {
                        result[0] = path;
                    }
                    return result[0] != null || ++seen[0] > LIMIT
                            ? FileVisitResult.TERMINATE
                            : FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult visitFileFailed(Path path, IOException e) {
                    return FileVisitResult.CONTINUE; // another user's directory
                }

                @Override
                public FileVisitResult postVisitDirectory(Path path, IOException e) {
                    return FileVisitResult.CONTINUE;
                }
            });
        } catch (IOException e) {
            return Optional.empty(); // the working directory is gone
        }
        return Optional.ofNullable(result[0]).map(Path::toString);
    }
}
