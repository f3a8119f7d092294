package io.stasis.image;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.serializers.DefaultSerializers;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.MemoryImage;
import io.stasis.image.model.OpenDescription;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.SystemVObject;
import io.stasis.image.model.ThreadImage;
import java.util.List;

/**
 * Classes that record files may hold, each with the number it has on disk for ever. Nothing else is read or written. A
 * changed record gets a new number and a raised {@link FormatVersion}.
 */
final class RecordTypes {
    private static final int FIRST = 20;

    /** The position in this list is part of the format: append, never reorder. */
    static final List<Class<?>> TYPES = List.of(
            byte[].class,
            int[].class,
            long[].class,
            ProcessImage.class,
            ProcessImage.Identity.class,
            ProcessImage.FilesystemState.class,
            ProcessImage.IntervalTimer.class,
            ProcessImage.Limit.class,
            ProcessImage.SignalState.class,
            ProcessImage.SignalAction.class,
            ProcessImage.ProcessAttributes.class,
            ThreadImage.class,
            ThreadImage.BlockedCall.class,
            ThreadImage.RseqRegistration.class,
            ThreadImage.AlternateStack.class,
            ThreadImage.Credentials.class,
            ThreadImage.Scheduling.class,
            MemoryImage.class,
            MemoryImage.Layout.class,
            MemoryImage.Mapping.class,
            MemoryImage.Backing.Anonymous.class,
            MemoryImage.Backing.MappedFile.class,
            MemoryImage.Backing.SharedMemory.class,
            MemoryImage.Backing.Kernel.class,
            FileReference.class,
            DescriptorEntry.class,
            OpenDescription.OpenFile.class,
            OpenDescription.PipeEnd.class,
            OpenDescription.Terminal.class,
            OpenDescription.External.class,
            ComputationImage.class,
            ComputationImage.Zombie.class,
            ComputationImage.Pipe.class,
            ComputationImage.SharedObject.class,
            ComputationImage.Terminal.class,
            ComputationImage.SavedFile.class,
            OpenDescription.EventPoll.class,
            OpenDescription.Interest.class,
            OpenDescription.EventCounter.class,
            OpenDescription.UnixSocket.class,
            ComputationImage.SignalOwner.class,
            OpenDescription.SocketFile.class,
            OpenDescription.SocketOption.class,
            OpenDescription.SocketMessage.class,
            OpenDescription.InetSocket.class,
            ComputationImage.NamelessFile.class,
            MemoryImage.Backing.MappedNamelessFile.class,
            MemoryImage.Backing.Detached.class,
            OpenDescription.OpenNamelessFile.class,
            ComputationImage.Segment.class,
            ComputationImage.FileLock.class,
            OpenDescription.OpenRemovedDirectory.class,
            OpenDescription.PseudoTerminal.Master.class,
            OpenDescription.PseudoTerminal.Slave.class,
            OpenDescription.SignalQueue.class,
            OpenDescription.TimerDescriptor.class,
            OpenDescription.ProcessDescriptor.class,
            ProcessImage.PosixTimer.class,
            OpenDescription.FileWatcher.class,
            OpenDescription.FileWatch.class,
            SystemVObject.SemaphoreSet.class,
            SystemVObject.MessageQueue.class,
            OpenDescription.PosixMessageQueue.class,
            ThreadImage.SeccompFilter.class,
            ThreadImage.Modes.class);

    private RecordTypes() {}

    /** A Kryo that knows these classes and no others. Not for use by two threads. */
    static Kryo kryo() {
        Kryo kryo = new RecordKryo();
        kryo.register(List.class, new RecordKryo.ListSerializer(), FIRST - 10);
        kryo.register(Integer.class, new DefaultSerializers.IntSerializer(), FIRST - 7);
        for (int i = 0; i < TYPES.size(); i++) {
            kryo.register(TYPES.get(i), FIRST + i);
        }
        return kryo;
    }
}
