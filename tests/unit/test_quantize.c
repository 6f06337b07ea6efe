/* --weights int8 and int4: every number of a weight is the nearest code of its block, whichever way it lies in the file, and only products
 * and lookups change. */
#include "plan/apply/apply.h"
#include "tests/unit/main.h"
#include "tests/unit/space.h"

#include <math.h>

enum { BLOCK = 32 };

static struct graph *quantized(struct arena *a, const char *body, int bits, int expected)
{
    const char *text = arena_printf(a, "graph g { import \"\" \"23\"\n%s\n}", body);
    struct compile c = {.arena = a, .graph = graph_parse(a, alg_new(a), text, "test", op_find)};
    pass_shapes(&c);
    ck_assert_int_eq(plan_quantize_weights(c.graph, bits), expected);
    return c.graph;
}

/* A constant of random numbers, among them a block of zeros and one whose greatest numbers differ in sign only. */
static char *random_weight(struct arena *a, int rows, int columns, float *to)
{
    char *text = arena_alloc(a, (size_t)(rows * columns) * 12 + 64), *end = text + sprintf(text, "const w: f32[%d, %d] = [", rows, columns);
    for (int i = 0; i < rows * columns; i++) {
        to[i] = i < 2 * BLOCK ? 0 : (float)(chance(2001) - 1000) / 500;
        if (i >= rows * columns / 2 && i < rows * columns / 2 + 4)
            to[i] = i % 2 ? 2.5f : -2.5f;
        end += sprintf(end, "%s%.6f", i ? ", " : "", (double)to[i]);
        to[i] = strtof(arena_printf(a, "%.6f", (double)to[i]), NULL);
    }
    sprintf(end, "]");
    return text;
}

/* Column j of w, number l. */
static float stored(const struct node *n, int codes, int scales, int64_t j, int64_t l, int64_t k, int bits, float *step)
{
    int64_t blocks = (k + BLOCK - 1) / BLOCK;
    const uint8_t *q = constant_data(n->in[codes]->constant, "codes");
    const float *s = constant_data(n->in[scales]->constant, "scales");
    int64_t i = j * blocks * BLOCK + l;
    int code = q[i * bits / 8] >> i * bits % 8 & ((1 << bits) - 1);
    *step = fabsf(s[j * blocks + l / BLOCK]);
    return (float)(code - (1 << (bits - 1))) * s[j * blocks + l / BLOCK];
}

/* by_rows: column j of the product is row j of w. The weight is given back. */
static void check_weight(const struct node *n, int codes, int scales, const float *w, int64_t columns, int64_t k, int bits, bool by_rows)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t l = 0; l < k; l++) {
            float step, found = stored(n, codes, scales, j, l, k, bits, &step), want = by_rows ? w[j * k + l] : w[l * columns + j];
            bool beyond = fabsf(want) > step * ((float)(1 << (bits - 1)) - 1); /* the code of the greatest number has no opposite */
            ck_assert_float_le(fabsf(found - want), step * (beyond ? 1.0001f : 0.5001f));
        }
    constant_release(n->in[codes]->constant);
    constant_release(n->in[scales]->constant);
    ck_assert_ptr_null(n->in[codes]->constant->data);
}

static const struct {
    const char *body, *op;
    int codes, scales;
    bool by_rows;
} forms[] = {
    {"input x: f32[B, %d] %s node n: y: ? = MatMul(x, w) output y", "MatMulNBits", 1, 2, false},
    {"input x: f32[B, %d] %s node n: y: ? = Gemm(x, w) {transB = 1} output y", "MatMulNBits", 1, 2, true},
    {"input x: f32[B, %d] %s node t: v: ? = Transpose(w) {perm = [1, 0]} node n: y: ? = MatMul(x, v) output y", "MatMulNBits", 1, 2, true},
};

START_TEST(numbers_are_rounded_to_the_nearest)
{
    struct arena *a = arena_new();
    chance_state = (uint64_t)_i;
    int bits = _i % 2 ? 4 : 8, form = _i / 2 % COUNT(forms), k = BLOCK + chance(70), n = 8 + chance(40);
    float *w = arena_alloc(a, (size_t)(n * k) * sizeof *w);
    char *text = forms[form].by_rows ? random_weight(a, n, k, w) : random_weight(a, k, n, w), body[200000];
    snprintf(body, sizeof body, forms[form].body, k, text);
    struct graph *g = quantized(a, body, bits, 1);
    const struct node *node = g->nodes.at[g->nodes.n - 1];
    ck_assert_str_eq(node->optype, forms[form].op);
    ck_assert_int_eq(attr_int(node, "K"), k);
    check_weight(node, forms[form].codes, forms[form].scales, w, n, k, bits, forms[form].by_rows);
    check_weight(node, forms[form].codes, forms[form].scales, w, n, k, bits, forms[form].by_rows); /* made again */
    arena_free(a);
}
END_TEST

START_TEST(lookups_read_rows)
{
    struct arena *a = arena_new();
    chance_state = 7;
    float *w = arena_alloc(a, 20 * 64 * sizeof *w);
    struct graph *g = quantized(a, arena_printf(a, "input i: i64[B] %s node n: y: ? = Gather(w, i) output y", random_weight(a, 20, 64, w)),
                                4, 1);
    const struct node *node = g->nodes.at[0];
    ck_assert_str_eq(node->optype, "GatherBlockQuantized");
    check_weight(node, 0, 2, w, 20, 64, 4, true);
    arena_free(a);
}
END_TEST

/* Other readers, factors, and weights that are too narrow for a block keep f32. */
static const char *const kept[] = {
    "input x: f32[B, 40] %s node n: y: ? = MatMul(x, w) node m: z: ? = Abs(w) output y output z",
    "input x: f32[B, 40] %s node n: y: ? = Gemm(x, w) {alpha = 2.0} output y",
    "input x: f32[40, B] %s node n: y: ? = Gemm(x, w) {transA = 1} output y",
    "input x: f32[B, 16] %s node n: y: ? = Gemm(x, w) {transB = 1} output y",
    "input i: i64[B] %s node n: y: ? = Gather(w, i) output y",
};

START_TEST(others_stay)
{
    struct arena *a = arena_new();
    char *text = random_weight(a, 40, 16, arena_alloc(a, 40 * 16 * sizeof(float))), body[40000];
    snprintf(body, sizeof body, kept[_i], text);
    quantized(a, body, 8, 0);
    arena_free(a);
}
END_TEST

static const char *const infinite = "input x: f32[B, 32] const w: f32[32, 8] = hex \"%s\" node n: y: ? = MatMul(x, w) output y";

START_TEST(what_is_not_finite_is_refused)
{
    struct arena *a = arena_new();
    char digits[32 * 8 * 8 + 1];
    memset(digits, '0', sizeof digits - 1);
    digits[sizeof digits - 1] = 0;
    memcpy(digits + 80, "0000807f", 8);
    char body[4000];
    snprintf(body, sizeof body, infinite, digits);
    struct graph *g = quantized(a, body, 8, 1);
    constant_data(g->nodes.at[0]->in[1]->constant, "codes");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize");
    TCase *t = unit_case(suite, "quantize", NULL, NULL);
    tcase_add_loop_test(t, numbers_are_rounded_to_the_nearest, 0, 12);
    tcase_add_test(t, lookups_read_rows);
    tcase_add_loop_test(t, others_stay, 0, COUNT(kept));
    tcase_add_exit_test(t, what_is_not_finite_is_refused, 1);
    return unit_run(suite);
}
