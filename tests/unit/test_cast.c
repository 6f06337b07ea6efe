/* Cast between f32 and integers (kern/pointwise/cast.c): what casts through f64 give. IsNaN and IsInf of floats of 8 bits: each code. */
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

/* Codes that are NaN, infinity and minus infinity, by the tables of the standard; -1: no code is. */
static const struct {
    enum dtype type;
    int nans, nan[2]; /* how many are NaN; two of them */
    int infinity[2];
} tiny[] = {{DT_F8E4M3FN, 2, {0x7f, 0xff}, {-1, -1}},
            {DT_F8E4M3FNUZ, 1, {0x80, 0x80}, {-1, -1}},
            {DT_F8E5M2, 6, {0x7d, 0xfd}, {0x7c, 0xfc}},
            {DT_F8E5M2FNUZ, 1, {0x80, 0x80}, {-1, -1}}};

static const uint8_t *tested(const char *op, bool negative, bool positive, const struct tensor *x)
{
    struct node *n = node_new("", op);
    struct tensor y = numbers(DT_BOOL, 256);
    if (strcmp(op, "IsInf") == 0) {
        attr_set_int(n, "detect_negative", negative);
        attr_set_int(n, "detect_positive", positive);
    }
    run(n, 1, x, &y);
    return y.data;
}

START_TEST(tests_of_8_bit_floats)
{
    struct tensor x = numbers(tiny[_i].type, 256);
    for (int k = 0; k < 256; k++)
        ((uint8_t *)x.data)[k] = (uint8_t)k;
    const uint8_t *nan = tested("IsNaN", false, false, &x), *any = tested("IsInf", true, true, &x),
                  *positive = tested("IsInf", false, true, &x), *negative = tested("IsInf", true, false, &x),
                  *nothing = tested("IsInf", false, false, &x);
    int nans = 0;
    for (int k = 0; k < 256; k++) {
        nans += nan[k];
        ck_assert_int_eq(any[k], k == tiny[_i].infinity[0] || k == tiny[_i].infinity[1]);
        ck_assert_int_eq(positive[k], k == tiny[_i].infinity[0]);
        ck_assert_int_eq(negative[k], k == tiny[_i].infinity[1]);
        ck_assert_int_eq(nothing[k], 0);
    }
    ck_assert_int_eq(nans, tiny[_i].nans);
    ck_assert(nan[tiny[_i].nan[0]] && nan[tiny[_i].nan[1]]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cast");
    TCase *c = unit_case(suite, "cast", setup, teardown);
    tcase_add_test(c, casts_saturate);
    tcase_add_loop_test(c, tests_of_8_bit_floats, 0, COUNT(tiny));
    return unit_run(suite);
}
