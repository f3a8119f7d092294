/*
 * MPI ranks that send messages round a ring, small and large ones, every word of which is checked; now and then a
 * collective call. Rank 0 makes the ticks.
 */
#include "check.h"
#include <mpi.h>

enum { LARGE = 60000 };
static long message[LARGE];

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    begin(argc, argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int before = (rank + size - 1) % size, after = (rank + 1) % size;
    for (long round = 1, goes_on = 1; goes_on; round++) {
        int words = round % 10 ? 1 + (int)(mix(round) % 500) : LARGE;
        if (rank == 0) {
            for (int i = 0; i < words; i++) message[i] = round * 1000003 + i;
            message[words - 1] = stopped() ? -1 : round;
            MPI_Send(message, words, MPI_LONG, after, 5, MPI_COMM_WORLD);
        }
        MPI_Status status;
        int count;
        MPI_Recv(message, LARGE, MPI_LONG, before, 5, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_LONG, &count);
        if (count != words) fail("rank %d got %d words, not %d", rank, count, words);
        long added = rank ? rank - 1 : size - 1;
        for (int i = 0; i < words - 1; i++)
            if (message[i] != round * 1000003 + i + added) fail("rank %d: word %d of round %ld is %ld", rank, i, round, message[i]);
        goes_on = message[words - 1] != -1;
        if (rank) {
            for (int i = 0; i < words - 1; i++) message[i]++;
            MPI_Send(message, words, MPI_LONG, after, 5, MPI_COMM_WORLD);
        }
        long sum = 0, own = rank + round;
        if (round % 7 == 0) {
            MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            if (sum != size * round + (long)size * (size - 1) / 2) fail("rank %d: the sum is %ld", rank, sum);
        }
        if (rank == 0 && goes_on) {
            tick();
            rest(2);
        }
    }
    MPI_Finalize();
    if (rank) return 0; /* a launcher may end all when one ends with another status */
    return done();
}
