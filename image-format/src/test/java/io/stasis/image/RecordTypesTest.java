package io.stasis.image;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.MemoryImage;
import io.stasis.image.model.OpenDescription;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.ThreadImage;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class RecordTypesTest {
    @Test
    void everyRecordOfTheModelHasANumber() {
        Stream<Class<?>> top = Stream.of(
                ComputationImage.class,
                DescriptorEntry.class,
                FileReference.class,
                MemoryImage.class,
                MemoryImage.Backing.class,
                OpenDescription.class,
                ProcessImage.class,
                ThreadImage.class);
        List<Class<?>> records = top.flatMap(
                        type -> Stream.concat(Stream.of(type), Stream.of(type.getDeclaredClasses())))
                .filter(Class::isRecord)
                .<Class<?>>map(type -> type)
                .distinct()
                .toList();
        assertThat(RecordTypes.TYPES).containsAll(records);
    }
}
