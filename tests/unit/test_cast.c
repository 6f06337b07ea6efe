/* Cast between f32 and integers (kern/pointwise/cast.c): what casts through f64 give. */
#include "kern/core/core.h"
#include "tests/unit/kernel.h"

#include <math.h>
#include <string.h>

static struct tensor numbers(enum dtype t, int64_t n)
{
    return tensor_new(t, DIMS(n), NULL);
}

static void cast(const struct tensor *from, struct tensor *to)
{
    run(node_new("", "Cast"), 1, from, to);
}

/* Between f32 and integers as through f64, which holds both but i64 and u64. */
START_TEST(casts_saturate)
{
#define TYPE(dt, ...) dt,
    static const enum dtype types[] = {INT_TYPES(TYPE, )};
#undef TYPE
    static const float odd[] = {0,        -0.0f,     0.99f, -0.99f,        1.5f,           -1.5f,         127.5f,  128,      -129,
                                255.5f,   256,       -255,  2147483648.0f, -2147483648.0f, 4294967296.0f, 9.3e18f, -9.3e18f, 1.9e19f,
                                INFINITY, -INFINITY, NAN};
    enum { N = 21 * 3 };
    struct tensor x = numbers(DT_F32, N), wide = numbers(DT_F64, N), real = numbers(DT_F32, N), again = numbers(DT_F32, N);
    for (int i = 0; i < N; i++)
        ((double *)wide.data)[i] = (double)(((float *)x.data)[i] = odd[i % COUNT(odd)]);
    for (int t = 0; t < COUNT(types); t++) {
        struct tensor found = numbers(types[t], N), want = numbers(types[t], N);
        bool longs = types[t] == DT_I64 || types[t] == DT_U64;
        cast(&x, &found);
        cast(&wide, &want);
        ck_assert_msg(memcmp(found.data, want.data, tensor_bytes(&want)) == 0, "f32 as %s", dtype_name(types[t]));
        cast(&found, &real);
        cast(&found, &wide);
        cast(&wide, &again);
        ck_assert_msg(longs || memcmp(real.data, again.data, tensor_bytes(&real)) == 0, "%s as f32", dtype_name(types[t]));
        for (int i = 0; i < N; i++)
            ((double *)wide.data)[i] = (double)((float *)x.data)[i];
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cast");
    tcase_add_test(unit_case(suite, "cast", setup, teardown), casts_saturate);
    return unit_run(suite);
}
