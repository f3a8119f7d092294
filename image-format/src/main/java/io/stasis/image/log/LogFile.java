package io.stasis.image.log;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.FileChannel;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * The log's file. A {@link FileChannel} is closed for all threads when one of them is interrupted in it; this one opens
 * the file again and goes on, so that an interrupt of one event's thread does not end the log of an agent. The thread
 * stays interrupted. Safe for use by several threads.
 */
final class LogFile implements AutoCloseable {
    /** Part of a call on a channel; must be repeatable. */
    private interface Call {
        long on(FileChannel channel) throws IOException;
    }

    private final Path path;
    private final boolean writable;
    private FileChannel channel;
    private boolean closed;

    private LogFile(Path path, boolean writable, FileChannel channel) {
        this.path = path;
        this.writable = writable;
        this.channel = channel;
    }

    /** Opens the file; for writing it is made when missing, readable to its owner only. */
    static LogFile open(Path path, boolean writable) throws IOException {
        Set<OpenOption> options = writable
                ? Set.of(StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)
                : Set.of(StandardOpenOption.READ);
        var mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
        return new LogFile(path, writable, FileChannel.open(path, options, mode));
    }

    long size() throws IOException {
        return call(FileChannel::size);
    }

    void write(ByteBuffer bytes, long offset) throws IOException {
        int begin = bytes.position();
        call(current -> {
            bytes.position(begin);
            while (bytes.hasRemaining()) {
                current.write(bytes, offset + bytes.position() - begin);
            }
            return 0;
        });
    }

    /** Reads until the buffer is full or the file ends. */
    void read(ByteBuffer target, long offset) throws IOException {
        int begin = target.position();
        call(current -> {
            target.position(begin);
            int got = 0;
            while (got >= 0 && target.hasRemaining()) {
                got = current.read(target, offset + target.position() - begin);
            }
            return 0;
        });
    }

    void truncate(long size) throws IOException {
        call(current -> current.truncate(size).size());
    }

    void force() throws IOException {
        call(current -> {
            current.force(false);
            return 0;
        });
    }

    private long call(Call call) throws IOException {
        boolean interrupted = Thread.interrupted();
        try {
            while (true) {
                FileChannel current = current();
                try {
                    return call.on(current);
                } catch (java.nio.channels.ClosedChannelException e) {
                    // By an interrupt of this thread (ClosedByInterrupt), of another (AsynchronousClose, or before the
                    // call), or by close().
                    interrupted |= Thread.interrupted();
                    reopen(current, e);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private synchronized FileChannel current() {
        return channel;
    }

    private synchronized void reopen(FileChannel broken, java.nio.channels.ClosedChannelException e)
            throws IOException {
        if (closed) {
            throw e instanceof AsynchronousCloseException ? e : new IOException("it is closed", e);
        }
        if (channel == broken) {
            channel = FileChannel.open(
                    path,
                    writable
                            ? Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE)
                            : Set.of(StandardOpenOption.READ));
        }
    }

    synchronized boolean isOpen() {
        return !closed;
    }

    @Override
    public synchronized void close() throws IOException {
        closed = true;
        channel.close();
    }
}
