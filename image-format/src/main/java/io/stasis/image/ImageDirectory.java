package io.stasis.image;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The images of one computation.
 *
 * <pre>
 *   counter.ckpt/
 *     0001/            a complete generation: it has a manifest.json
 *     0002/
 *     .0003.partial/   one that is being written; it has a locked file .lock
 *     latest -> 0002
 * </pre>
 *
 * A generation exists completely or not at all: it is written under another name, forced to disk file by file, and
 * renamed; then the rename is forced, then {@code latest} is replaced by a rename.
 */
public final class ImageDirectory {
    private static final String LATEST = "latest";
    private static final String LOCK = ".lock";

    private final Path path;

    private ImageDirectory(Path path) {
        this.path = path;
    }

    /** Opens an existing one. */
    public static ImageDirectory open(Path path) {
        if (!Files.isDirectory(path)) {
            throw new ImageException("there is no image directory " + path + "; see `stasis ps` for where images lie");
        }
        return new ImageDirectory(path.toAbsolutePath().normalize());
    }

    /** Opens it, and makes it first when it does not exist. */
    public static ImageDirectory create(Path path) {
        try {
            if (!Files.isDirectory(path)) {
                if (path.toAbsolutePath().getParent() != null) {
                    Files.createDirectories(path.toAbsolutePath().getParent());
                }
                Files.createDirectory(path, PrivateFiles.DIRECTORY);
            }
        } catch (IOException e) {
            throw ImageException.io("create the image directory", path, e);
        }
        return open(path);
    }

    public Path path() {
        return path;
    }

    /** Complete generations, oldest first. */
    public List<Generation> generations() {
        List<Generation> found = new ArrayList<>();
        try (Stream<Path> entries = Files.list(path)) {
            entries.forEach(entry -> {
                int number = number(entry.getFileName().toString());
                if (number > 0
                        && Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)
                        && Files.isRegularFile(entry.resolve(Manifest.NAME), LinkOption.NOFOLLOW_LINKS)) {
                    found.add(new Generation(number, entry));
                }
            });
        } catch (IOException e) {
            throw ImageException.io("list", path, e);
        }
        found.sort(Comparator.comparingInt(Generation::number));
        return found;
    }

    private static int number(String name) {
        return name.matches("[0-9]{4,9}") ? Integer.parseInt(name) : 0;
    }

    static String name(int number) {
        return String.format("%04d", number);
    }

    /** The newest complete generation. */
    public Generation latest() {
        List<Generation> all = generations();
        if (all.isEmpty()) {
            throw new ImageException("the image directory " + path
                    + " holds no complete generation; give the directory that `stasis checkpoint` named");
        }
        return all.getLast();
    }

    public Generation generation(int number) {
        return generations().stream()
                .filter(g -> g.number == number)
                .findFirst()
                .orElseThrow(() -> new ImageException("the image directory " + path + " has no complete generation "
                        + number + " (" + name(number) + "); it has "
                        + generations().stream().map(Generation::number).toList()));
    }

    /** Begins the next generation, and removes what writers that are gone left of theirs. */
    public Staging begin() {
        removeStale();
        int number = highestNumber() + 1;
        while (true) {
            Path staging = path.resolve("." + name(number) + ".partial");
            try {
                Files.createDirectory(staging, PrivateFiles.DIRECTORY);
                return new Staging(number, staging);
            } catch (java.nio.file.FileAlreadyExistsException e) {
                number++; // another checkpoint into the same directory is under way
            } catch (IOException e) {
                throw ImageException.io("create", staging, e);
            }
        }
    }

    /** Of all directories that look like a generation, also those whose manifest is gone: none is ever overwritten. */
    private int highestNumber() {
        try (Stream<Path> entries = Files.list(path)) {
            return entries.mapToInt(entry -> number(entry.getFileName().toString()))
                    .max()
                    .orElse(0);
        } catch (IOException e) {
            throw ImageException.io("list", path, e);
        }
    }

    private void removeStale() {
        try (Stream<Path> entries = Files.list(path)) {
            for (Path entry : entries.toList()) {
                if (entry.getFileName().toString().matches("\\.[0-9]{4,9}\\.partial") && !isLocked(entry)) {
                    deleteTree(entry);
                }
            }
        } catch (IOException e) {
            throw ImageException.io("clean up", path, e);
        }
    }

    private static boolean isLocked(Path staging) throws IOException {
        Path lock = staging.resolve(LOCK);
        if (!Files.exists(lock, LinkOption.NOFOLLOW_LINKS)) {
            // A writer makes the lock right after the directory; one without is from a writer that died in between.
            return System.currentTimeMillis()
                            - Files.getLastModifiedTime(staging).toMillis()
                    < 10_000;
        }
        try (FileChannel channel = FileChannel.open(lock, StandardOpenOption.WRITE);
                FileLock held = channel.tryLock()) {
            return held == null;
        } catch (OverlappingFileLockException e) {
            return true;
        }
    }

    private static void deleteTree(Path root) throws IOException {
        Files.walkFileTree(root, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException e) throws IOException {
                Files.deleteIfExists(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    /** A complete generation. */
    public record Generation(int number, Path path) {
        /** Reads and checks the manifest. */
        public Manifest manifest() {
            return Manifest.read(path);
        }
    }

    /** A generation that is being written. Closing it before {@link #commit} removes it. */
    public final class Staging implements AutoCloseable {
        private final int number;
        private final Path staging;
        private final FileChannel lock;
        private boolean committed;

        private Staging(int number, Path staging) throws IOException {
            this.number = number;
            this.staging = staging;
            this.lock = FileChannel.open(
                    staging.resolve(LOCK),
                    Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                    PrivateFiles.FILE);
            lock.lock();
        }

        public int number() {
            return number;
        }

        public Path path() {
            return staging;
        }

        /** Makes the directory for a host's files. */
        public Path host(String name) {
            try {
                return Files.createDirectory(staging.resolve(name), PrivateFiles.DIRECTORY);
            } catch (IOException e) {
                throw ImageException.io("create", staging.resolve(name), e);
            }
        }

        /** Makes the generation durable under its number. */
        public Generation commit(Manifest manifest) {
            Path file = staging.resolve(Manifest.NAME);
            try (FileChannel channel = PrivateFiles.create(file)) {
                byte[] json = manifest.toJson().getBytes(StandardCharsets.UTF_8);
                PrivateFiles.writeFully(channel, ByteBuffer.wrap(json), file);
            } catch (IOException e) {
                throw ImageException.io("write", file, e);
            }
            Path target = path.resolve(name(number));
            try {
                Files.delete(staging.resolve(LOCK));
                forceTree(staging);
                Files.move(staging, target, StandardCopyOption.ATOMIC_MOVE);
                committed = true;
                PrivateFiles.force(path);
                Path link = path.resolve(".latest." + number);
                Files.deleteIfExists(link);
                Files.createSymbolicLink(link, Path.of(name(number)));
                Files.move(link, path.resolve(LATEST), StandardCopyOption.ATOMIC_MOVE);
                PrivateFiles.force(path);
            } catch (IOException e) {
                throw ImageException.io("commit generation " + number + " in", path, e);
            } finally {
                closeLock();
            }
            return new Generation(number, target);
        }

        private static void forceTree(Path root) throws IOException {
            try (Stream<Path> all = Files.walk(root)) {
                // Files before the directories that name them.
                all.sorted(Comparator.reverseOrder()).forEach(PrivateFiles::force);
            }
        }

        private void closeLock() {
            try {
                lock.close();
            } catch (IOException e) {
                throw ImageException.io("close the lock of", staging, e);
            }
        }

        @Override
        public void close() {
            if (committed) {
                return;
            }
            try {
                closeLock();
                deleteTree(staging);
            } catch (IOException e) {
                throw ImageException.io("remove", staging, e);
            }
        }
    }
}
