/* packed: elements of 2 and 4 bits, unpacked to a byte each as in values, and packed as in constants and files: the first in the lowest
 * bits. Signed ones are sign-extended in their byte. */
#include "algebra/algebra.h"

uint8_t dtype_low_bits(enum dtype t, int64_t k)
{
    int64_t lo = 0, hi, mask = (1 << dtype_bits(t)) - 1;
    if (dtype_is_integer(t))
        dtype_range(t, &lo, &hi);
    return (uint8_t)(((k & mask) ^ -lo) + lo); /* -lo: the sign's bit */
}

void dtype_unpack(enum dtype t, const void *from, int64_t first, int64_t n, void *to)
{
    const uint8_t *packed = from;
    uint8_t *out = to;
    int bits = dtype_bits(t), per = 8 / bits;
    for (int64_t i = 0; i < n; i++)
        out[i] = dtype_low_bits(t, packed[(first + i) / per] >> (first + i) % per * bits);
}

void dtype_pack(enum dtype t, const void *from, int64_t n, void *to)
{
    const uint8_t *in = from;
    uint8_t *packed = to;
    int bits = dtype_bits(t), per = 8 / bits, mask = (1 << bits) - 1;
    for (int64_t i = 0; i < n; i += per) {
        int byte = 0;
        for (int k = 0; k < per && i + k < n; k++)
            byte |= (in[i + k] & mask) << k * bits;
        packed[i / per] = (uint8_t)byte;
    }
}
