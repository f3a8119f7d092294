package io.stasis.linux.elf;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** The kernel's virtual shared object, vdso(7), as it stands in memory. */
public final class Vdso {
    private static final int PT_LOAD = 1;
    private static final int PT_DYNAMIC = 2;
    private static final int DT_HASH = 4;
    private static final int DT_STRTAB = 5;
    private static final int DT_SYMTAB = 6;
    private static final int DT_GNU_HASH = 0x6ffffef5;
    private static final int SYMBOL = 24;

    private final ByteBuffer image;
    private final Map<String, Long> symbols = new HashMap<>();
    private long base;
    private long hash;
    private long gnuHash;
    private long strings;
    private long table;

    private Vdso(byte[] bytes) {
        image = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * The dynamic symbols that are defined in a 64-bit image: name to offset from its start.
     *
     * @throws IllegalArgumentException when it is no such image or is damaged
     */
    public static Map<String, Long> symbols(byte[] bytes) {
        Vdso vdso = new Vdso(bytes);
        try {
            vdso.readDynamic();
            vdso.readSymbols();
        } catch (IndexOutOfBoundsException e) {
            throw new IllegalArgumentException("a vDSO image of " + bytes.length + " bytes points outside itself", e);
        }
        return Map.copyOf(vdso.symbols);
    }

    private void readDynamic() {
        if (image.getInt(0) != ElfFile.MAGIC || image.get(4) != 2) {
            throw new IllegalArgumentException("not a 64-bit ELF image");
        }
        int programs = Math.toIntExact(image.getLong(32));
        int entrySize = Short.toUnsignedInt(image.getShort(54));
        int dynamic = -1;
        int dynamicEnd = -1;
        boolean loaded = false;
        for (int i = 0; i < Short.toUnsignedInt(image.getShort(56)); i++) {
            int at = programs + i * entrySize;
            int type = image.getInt(at);
            if (type == PT_LOAD && !loaded) {
                base = image.getLong(at + 16) - image.getLong(at + 8);
                loaded = true;
            } else if (type == PT_DYNAMIC) {
                dynamic = Math.toIntExact(image.getLong(at + 8));
                dynamicEnd = dynamic + Math.toIntExact(image.getLong(at + 32));
            }
        }
        for (int at = dynamic; at >= 0 && at + 16 <= dynamicEnd && image.getLong(at) != 0; at += 16) {
            long value = image.getLong(at + 8);
            switch ((int) image.getLong(at)) {
                case DT_HASH -> hash = value;
                case DT_GNU_HASH -> gnuHash = value;
                case DT_STRTAB -> strings = value;
                case DT_SYMTAB -> table = value;
                default -> {
                    // versions and sizes
                }
            }
        }
        if (strings == 0 || table == 0) {
            throw new IllegalArgumentException("no dynamic symbols in this image");
        }
    }

    private void readSymbols() {
        int count = hash != 0 ? image.getInt(offset(hash) + 4) : countByGnuHash();
        int first = offset(table);
        int names = offset(strings);
        for (int i = 1; i < count; i++) {
            int at = first + i * SYMBOL;
            boolean defined = image.getShort(at + 6) != 0 && image.getLong(at + 8) != 0;
            if (defined) {
                symbols.put(name(names + image.getInt(at)), image.getLong(at + 8) - base);
            }
        }
    }

    /** One more than the largest symbol index in the GNU hash table, whose chains end at an odd value. */
    private int countByGnuHash() {
        if (gnuHash == 0) {
            return 0;
        }
        int at = offset(gnuHash);
        int buckets = image.getInt(at);
        int symbolOffset = image.getInt(at + 4);
        int bucketTable = at + 16 + 8 * image.getInt(at + 8);
        int chains = bucketTable + 4 * buckets;
        int last = 0;
        for (int i = 0; i < buckets; i++) {
            last = Math.max(last, image.getInt(bucketTable + 4 * i));
        }
        if (last < symbolOffset) {
            return symbolOffset;
        }
        while ((image.getInt(chains + 4 * (last - symbolOffset)) & 1) == 0) {
            last++;
        }
        return last + 1;
    }

    private int offset(long address) {
        return Math.toIntExact(address - base);
    }

    private String name(int start) {
        int end = start;
        while (image.get(end) != 0) {
            end++;
        }
        return new String(image.array(), start, end - start, StandardCharsets.US_ASCII);
    }
}
