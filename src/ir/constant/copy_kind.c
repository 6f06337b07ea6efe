/* copy_kind: matrices with the same numbers, as when exporters write a tied weight twice. */
#include "ir/constant/constant.h"

#include <string.h>

bool constant_is_uniform(const void *a, const int64_t *dim, size_t size)
{
    int64_t n = dim[0] * dim[1];
    return n < 2 || memcmp(a, (const char *)a + size, (size_t)(n - 1) * size) == 0;
}

static bool is_transposed(const char *a, const char *b, int64_t rows, int64_t columns, size_t size)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            if (memcmp(a + (size_t)(r * columns + c) * size, b + (size_t)(c * rows + r) * size, size) != 0)
                return false;
    return true;
}

enum constant_copy constant_copy_kind(const void *a, const int64_t *a_dim, const void *b, const int64_t *b_dim, size_t size)
{
    int64_t n = a_dim[0] * a_dim[1];
    bool same = a_dim[0] == b_dim[0] && a_dim[1] == b_dim[1] && memcmp(a, b, (size_t)n * size) == 0;
    bool turned = !same && a_dim[0] == b_dim[1] && a_dim[1] == b_dim[0] && is_transposed(a, b, a_dim[0], a_dim[1], size);
    if ((!same && !turned) || constant_is_uniform(a, a_dim, size))
        return CONSTANT_OTHER;
    return same ? CONSTANT_SAME : CONSTANT_TRANSPOSED;
}
