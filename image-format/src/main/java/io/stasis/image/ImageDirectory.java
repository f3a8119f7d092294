package io.stasis.image;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
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
    private static final Pattern GENERATION = Pattern.compile("[0-9]{4,9}");
    private static final Pattern PARTIAL = Pattern.compile("\\.([0-9]{4,9})\\.partial");
    /** A writer makes the lock right after the directory, and removes it right before the rename. */
    private static final long UNLOCKED_MILLIS = 10_000;

    /**
     * Staging directories of this process. Their lock files must not be opened again: closing any descriptor of a file
     * gives up all locks that the process has on it, see fcntl_locking(2).
     */
    private static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

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
        Path directory = path.toAbsolutePath().normalize();
        try {
            if (!Files.isDirectory(directory)) {
                if (directory.getParent() != null) {
                    Files.createDirectories(directory.getParent());
                }
                createDirectory(directory);
                PrivateFiles.force(directory.getParent());
            }
        } catch (IOException e) {
            throw ImageWriteException.writing("create the image directory", directory, e);
        }
        return open(directory);
    }

    private static void createDirectory(Path directory) throws IOException {
        try {
            Files.createDirectory(directory, PrivateFiles.DIRECTORY);
        } catch (FileAlreadyExistsException e) {
            // Two first checkpoints at a time.
            if (!Files.isDirectory(directory)) {
                throw e;
            }
        }
    }

    public Path path() {
        return path;
    }

    /** Complete generations, oldest first. */
    public List<Generation> generations() {
        return entries().stream()
                .filter(entry -> number(entry, GENERATION) > 0
                        && Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)
                        && Files.isRegularFile(entry.resolve(Manifest.NAME), LinkOption.NOFOLLOW_LINKS))
                .map(entry -> new Generation(number(entry, GENERATION), entry))
                .sorted(Comparator.comparingInt(Generation::number))
                .toList();
    }

    private List<Path> entries() {
        try (Stream<Path> entries = Files.list(path)) {
            return entries.toList();
        } catch (IOException e) {
            throw ImageException.reading("list", path, e);
        } catch (UncheckedIOException e) {
            throw ImageException.reading("list", path, e.getCause());
        }
    }

    /** The number in the entry's name; 0 when it has another name. */
    private static int number(Path entry, Pattern pattern) {
        Matcher matcher = pattern.matcher(entry.getFileName().toString());
        return matcher.matches() ? Integer.parseInt(matcher.group(matcher.groupCount())) : 0;
    }

    private static String name(int number) {
        return String.format(Locale.ROOT, "%04d", number);
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

    /**
     * Begins the next generation, and removes what writers that are gone left of theirs. Its number is above that of all
     * generations, also of those that others are writing now or that have lost their manifest.
     */
    public Staging begin() {
        try {
            removeStale();
            int number = 1
                    + entries().stream()
                            .mapToInt(entry -> Math.max(number(entry, GENERATION), number(entry, PARTIAL)))
                            .max()
                            .orElse(0);
            while (true) {
                Path staging = path.resolve("." + name(number) + ".partial");
                if (makeStaging(staging)) {
                    Staging begun = new Staging(number, staging);
                    // The one that was written there a moment ago may have been renamed meanwhile.
                    if (!Files.exists(path.resolve(name(number)), LinkOption.NOFOLLOW_LINKS)) {
                        return begun;
                    }
                    begun.close();
                }
                number++;
            }
        } catch (IOException e) {
            throw ImageWriteException.writing("begin a generation in", path, e);
        }
    }

    private static boolean makeStaging(Path staging) throws IOException {
        try {
            Files.createDirectory(staging, PrivateFiles.DIRECTORY);
            return true;
        } catch (FileAlreadyExistsException e) {
            return false; // another checkpoint into the same directory is under way
        }
    }

    private void removeStale() throws IOException {
        for (Path entry : entries()) {
            if (number(entry, PARTIAL) > 0 && !isInUse(entry)) {
                deleteTree(entry);
            }
        }
    }

    private static boolean isInUse(Path staging) throws IOException {
        try {
            if (OWN.contains(staging.toRealPath())) {
                return true;
            }
            Path lock = staging.resolve(LOCK);
            if (!Files.exists(lock, LinkOption.NOFOLLOW_LINKS)) {
                long modified = Files.getLastModifiedTime(staging, LinkOption.NOFOLLOW_LINKS)
                        .toMillis();
                return Math.abs(System.currentTimeMillis() - modified) < UNLOCKED_MILLIS;
            }
            try (FileChannel channel =
                            FileChannel.open(lock, Set.of(StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS));
                    FileLock held = channel.tryLock()) {
                return held == null;
            }
        } catch (NoSuchFileException e) {
            return true; // it is being committed, or removed by another
        } catch (OverlappingFileLockException e) {
            return true;
        }
    }

    private static void deleteTree(Path root) throws IOException {
        Files.walkFileTree(root, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
                if (e instanceof NoSuchFileException) {
                    return FileVisitResult.CONTINUE; // another removes it too
                }
                throw e;
            }

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

    /**
     * A generation that is being written. Closing it before {@link #commit}, or after that failed, removes it. For one
     * thread at a time.
     */
    public final class Staging implements AutoCloseable {
        private final int number;
        private final Path staging;
        private final Path real;
        private final FileChannel lock;
        private boolean committed;

        private Staging(int number, Path staging) throws IOException {
            this.number = number;
            this.staging = staging;
            this.real = staging.toRealPath();
            OWN.add(real);
            FileChannel channel = null;
            try {
                channel = PrivateFiles.create(staging.resolve(LOCK));
                channel.lock();
            } catch (RuntimeException | IOException e) {
                if (channel != null) {
                    channel.close();
                }
                deleteTree(staging);
                OWN.remove(real);
                throw e;
            }
            this.lock = channel;
        }

        public int number() {
            return number;
        }

        public Path path() {
            return staging;
        }

        /**
         * Makes the directory for a host's files.
         *
         * @throws ImageException also when {@code name} is none for a directory right in the generation
         */
        public Path host(String name) {
            if (name.isEmpty() || name.startsWith(".") || name.indexOf('/') >= 0 || name.indexOf('\0') >= 0) {
                throw new ImageException("the host name \"" + name
                        + "\" is none for a directory of an image; set STASIS_HOST to another");
            }
            try {
                return Files.createDirectory(staging.resolve(name), PrivateFiles.DIRECTORY);
            } catch (IOException e) {
                throw ImageWriteException.writing("create", staging.resolve(name), e);
            }
        }

        /**
         * Makes the generation durable under its number: the manifest, every file, every directory, the rename, and
         * last {@code latest}.
         */
        public Generation commit(Manifest manifest) {
            return commit(manifest, written -> {});
        }

        /**
         * As {@link #commit(Manifest)}.
         *
         * @param complete is given the directory when all files are written and none is forced yet, to sign them
         */
        public Generation commit(Manifest manifest, Consumer<Path> complete) {
            Path target = path.resolve(name(number));
            try {
                writeManifest(manifest);
                complete.accept(staging);
                forceTree(staging);
                Files.delete(staging.resolve(LOCK));
                PrivateFiles.force(staging);
                Files.move(staging, target, StandardCopyOption.ATOMIC_MOVE);
                committed = true;
                PrivateFiles.force(path);
                pointLatest();
            } catch (IOException e) {
                throw ImageWriteException.writing("commit generation " + number + " in", path, e);
            } catch (UncheckedIOException e) {
                throw ImageWriteException.writing("commit generation " + number + " in", path, e.getCause());
            } finally {
                if (committed) {
                    release();
                }
            }
            return new Generation(number, target);
        }

        private void writeManifest(Manifest manifest) throws IOException {
            Path file = staging.resolve(Manifest.NAME);
            try (FileChannel channel = PrivateFiles.create(file)) {
                byte[] json = manifest.toJson().getBytes(StandardCharsets.UTF_8);
                PrivateFiles.writeFully(channel, ByteBuffer.wrap(json), 0, file);
            }
        }

        private static void forceTree(Path root) throws IOException {
            try (Stream<Path> all = Files.walk(root)) {
                // Files before the directories that name them.
                all.filter(entry -> !entry.endsWith(LOCK))
                        .sorted(Comparator.reverseOrder())
                        .forEach(PrivateFiles::force);
            }
        }

        /** The newest generation may be another's that was committed meanwhile. */
        private void pointLatest() throws IOException {
            Path link = path.resolve(".latest." + number);
            Files.deleteIfExists(link);
            Files.createSymbolicLink(link, Path.of(name(latest().number)));
            Files.move(link, path.resolve(LATEST), StandardCopyOption.ATOMIC_MOVE);
            PrivateFiles.force(path);
        }

        private void release() {
            try {
                lock.close();
            } catch (IOException e) {
                throw ImageWriteException.writing("close the lock of", staging, e);
            } finally {
                OWN.remove(real);
            }
        }

        @Override
        public void close() {
            if (committed || !OWN.contains(real)) {
                return;
            }
            // Still locked, or a writer that begins now would remove it too.
            try {
                deleteTree(staging);
            } catch (IOException e) {
                throw ImageWriteException.writing("remove", staging, e);
            } finally {
                release();
            }
        }
    }
}
