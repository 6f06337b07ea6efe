/* read_tensor: a tensor from a file, or from numbers as text. */
#include "job/io/io.h"
#include "onnx/onnx.h"

/* Converts numbers of 2 to 8 bits that numpy lacks: .npy files have them as |i1, or their bits as |u1 or, with ml_dtypes, |V1. */
static void take_type(struct tensor *t, enum dtype wanted, const char *file)
{
    if (!dtype_is_small(wanted) || !dtype_is_byte(t->dtype))
        return;
    bool numbers = t->dtype == DT_I8 && dtype_is_integer(wanted);
    int64_t lo = 0, hi = (1 << dtype_bits(wanted)) - 1;
    if (numbers)
        dtype_range(wanted, &lo, &hi);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        double x = tensor_element(t, i);
        if (x < (double)lo || x > (double)hi)
            fail("%s: element %lld is %g, expected %lld to %lld, for the input is %s", file, (long long)i, x, (long long)lo, (long long)hi,
                 dtype_name(wanted));
        if (dtype_is_packed(wanted))
            ((uint8_t *)t->data)[i] = dtype_low_bits(wanted, (int64_t)x);
    }
    t->dtype = wanted;
}

struct tensor job_read_tensor(struct arena *a, const char *from, const struct value *input)
{
    const char *name;
    struct tensor t;
    if (path_ends(from, ".npy"))
        t = tensor_read_npy(a, from);
    else if (path_ends(from, ".pb"))
        t = tensor_read_pb(a, from, &name);
    else if (literal_is_one(from))
        return literal_read(a, from, input);
    else
        fail_usage("%s: expected a .npy or .pb file, numbers as 1,2,3 or [1,2],[3,4], or strings as \"a\",\"b\"", from);
    if (input)
        take_type(&t, input->type.dtype, from);
    return t;
}
