/* initial: the initial values of an adapter. B is zero, so the adapter changes nothing at first. */
#include "plan/lora/lora.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

void lora_initial(const char *name, uint64_t seed, int64_t rows, int64_t rank, float *to)
{
    double bound = 1 / sqrt((double)rows);
    uint64_t own = splitmix(XXH3_64bits(name, strlen(name)) ^ splitmix(seed - SPLITMIX_STEP));
    for (int64_t i = 0; i < rows * rank; i++) {
        double drawn = ((double)(splitmix(own + (uint64_t)i * SPLITMIX_STEP) >> 40) + 0.5) / (1 << 24); /* from 0 to 1 */
        to[i] = (float)(bound * (2 * drawn - 1));
    }
}
