/* A Chain (kern/pointwise/chain.c) of operands that broadcast in any way: every result equals plain loops', on any number of threads. */
#include "base/half.h"
#include "kern/pointwise/pointwise.h"
#include "tests/unit/kernel.h"

enum { RANK = 4, OPERANDS = 3 };

static int64_t draw(int64_t n)
{
    return rand() % n;
}

/* Small whole numbers, which all types hold. */
static struct tensor draw_operand(const struct tensor *y)
{
    enum dtype types[] = {DT_F32, DT_F32, DT_F16};
    struct tensor t = {.dtype = types[draw(COUNT(types))], .rank = y->rank - (int)draw(2)};
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = draw(3) ? y->dim[d + y->rank - t.rank] : 1;
    t = tensor_new(t.dtype, t.rank, t.dim, NULL);
    for (int64_t i = 0; i < tensor_elements(&t); i++)
        if (t.dtype == DT_F32)
            ((float *)t.data)[i] = (float)(draw(41) - 20);
        else
            ((uint16_t *)t.data)[i] = f32_to_f16((float)(draw(41) - 20));
    return t;
}

/* What the operand has for element i of y. */
static float element(const struct tensor *t, const struct tensor *y, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = y->rank - 1; d >= 0; d--) {
        int e = d - (y->rank - t->rank);
        if (e >= 0) {
            at += t->dim[e] == 1 ? 0 : i % y->dim[d] * step;
            step *= t->dim[e];
        }
        i /= y->dim[d];
    }
    return t->dtype == DT_F32 ? ((const float *)t->data)[at] : f16_to_f32(((const uint16_t *)t->data)[at]);
}

START_TEST(operands_broadcast)
{
    srand((unsigned)_i);
    struct tensor y = {.dtype = DT_F32, .rank = 1 + (int)draw(RANK)}, in[OPERANDS];
    for (int d = 0; d < y.rank; d++)
        y.dim[d] = 1 + draw(draw(3) ? 6 : 20);
    y = tensor_new(DT_F32, y.rank, y.dim, NULL);
    for (int k = 0; k < OPERANDS; k++)
        in[k] = draw_operand(&y);
    struct node *n = node_new("tpc", "Chain");
    attr_set_ints(graph, n, "code", 6, (int64_t[]){CHAIN_Mul, 0, 1, CHAIN_Sub, 3, 2});
    run(n, OPERANDS, in, &y);
    for (int64_t i = 0; i < tensor_elements(&y); i++) {
        float want = element(&in[0], &y, i) * element(&in[1], &y, i) - element(&in[2], &y, i), found = ((float *)y.data)[i];
        ck_assert_msg(found >= want && found <= want, "element %lld is %g, not %g", (long long)i, (double)found, (double)want);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chain");
    TCase *chains = unit_case(suite, "chain", setup, teardown);
    tcase_add_loop_test(chains, operands_broadcast, 0, 500);
    return unit_run(suite);
}
