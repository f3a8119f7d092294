package io.stasis.linux;

/** An address in another process; the type keeps it from being taken for one of ours. */
public record RemoteAddress(long value) {
    public RemoteAddress plus(long bytes) {
        return new RemoteAddress(value + bytes);
    }

    @Override
    public String toString() {
        return "0x" + Long.toHexString(value);
    }
}
