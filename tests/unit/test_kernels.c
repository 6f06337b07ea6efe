/* Kernels against literal expectations: one small case for each family, empty tensors, NaN and -inf, and the failures that name a node. */
#include "kern/chunk/chunk.h"
#include "tests/unit/kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- making tensors and calling ---------------------------------------------------------------------------------------- */
#define F32(dims, ...) tensor_new(DT_F32, dims, (const float[]){__VA_ARGS__})
#define I64(dims, ...) tensor_new(DT_I64, dims, (const int64_t[]){__VA_ARGS__})
#define BOOL(dims, ...) tensor_new(DT_BOOL, dims, (const uint8_t[]){__VA_ARGS__})
#define ABSENT       \
    (struct tensor)  \
    {                \
        .data = NULL \
    }
#define RESULT(dtype, dims) tensor_new(dtype, dims, NULL)

static void expect(const struct tensor *t, const float *want, int n)
{
    ck_assert_int_eq(tensor_elements(t), n);
    for (int i = 0; i < n; i++) {
        float x = ((const float *)t->data)[i];
        if (isnan(want[i]))
            ck_assert_msg(isnan(x), "element %d is %g, not NaN", i, (double)x);
        else
            ck_assert_msg(x == want[i] || fabsf(x - want[i]) <= 2e-6f * (1 + fabsf(want[i])), "element %d is %.9g, not %.9g", i, (double)x,
                          (double)want[i]);
    }
}
#define EXPECT(t, ...) expect(&(t), (const float[]){__VA_ARGS__}, (int)(sizeof(float[]){__VA_ARGS__} / sizeof(float)))

/* ---- packed weights -------------------------------------------------------------------------------------------------------- */
static void *packed_of(const char *op, struct value *w, int transposed)
{
    struct node *n = graph_node(graph, op_find("", op), op, 2, (struct value *[]){w, w}, 1);
    struct tensor t = {.dtype = DT_F32, .rank = 2, .dim = {64, 64}, .data = (void *)(uintptr_t)w->constant->data};
    void *cache = NULL;
    if (transposed >= 0)
        attr_set_int(n, "transB", transposed);
    struct kcall call = {.node = n,
                         .graph = graph,
                         .nin = 2,
                         .nout = 1,
                         .in = (struct tensor[]){t, t},
                         .env = env,
                         .in_constant = (bool[]){false, true},
                         .cache = &cache};
    ck_assert_int_eq(kern_pack(&call) == 1 << 1, cache != NULL);
    return cache;
}

START_TEST(a_weight_is_packed_once)
{
    float data[64 * 64] = {1, 2, 3};
    struct value *w = graph_constant(graph, "w", DT_F32, 2, (int64_t[]){64, 64}, data),
                 *other = graph_constant(graph, "other", DT_F32, 2, (int64_t[]){64, 64}, data);
    struct kenv *shared = kenv_share(env);
    void *packed = packed_of("MatMul", w, -1);
    kenv_free(shared);
    if (!packed) /* this machine reads weights as they are stored */
        return;
    ck_assert_ptr_eq(packed_of("MatMul", w, -1), packed);
    ck_assert_ptr_eq(packed_of("Gemm", w, 0), packed);
    ck_assert_ptr_ne(packed_of("Gemm", w, 1), packed);
    ck_assert_ptr_ne(packed_of("MatMul", other, -1), packed);
}
END_TEST

/* ---- families -------------------------------------------------------------------------------------------------------------- */
/* Rows of an index that are one number, which are stretches, and rows that are not: as indices of i32, which are taken one by one. */
START_TEST(indices_of_whole_rows)
{
    enum { ROWS = 5, WIDTH = 9, ALL = ROWS * WIDTH };
    static const char *const how[] = {"none", "add", "mul", "max", "min"};
    int64_t wide[ALL];
    int32_t narrow[ALL];
    float x[ALL], u[ALL];
    srand((unsigned)_i);
    for (int i = 0; i < ALL; i++) {
        bool again = i % WIDTH && (i / WIDTH != 2 || i % WIDTH != WIDTH - 1);
        narrow[i] = again ? narrow[i - 1] : rand() % (2 * ROWS) - ROWS;
        wide[i] = narrow[i];
        x[i] = (float)(rand() % 99) / 8;
        u[i] = (float)(rand() % 99) / 8;
    }
    struct tensor data = tensor_new(DT_F32, DIMS(ROWS, WIDTH), x), updates = tensor_new(DT_F32, DIMS(ROWS, WIDTH), u), y[2];
    for (int k = 0; k < 2; k++) {
        struct tensor index = tensor_new(k ? DT_I64 : DT_I32, DIMS(ROWS, WIDTH), k ? (void *)wide : (void *)narrow);
        struct node *gather = node_new("", "GatherElements"), *scatter = node_new("", "ScatterElements");
        struct tensor picked = RESULT(DT_F32, DIMS(ROWS, WIDTH));
        attr_set_int(gather, "axis", 0);
        attr_set_string(scatter, "reduction", how[_i % 5]);
        y[k] = RESULT(DT_F32, DIMS(ROWS, WIDTH));
        run(gather, IN(data, index), &picked);
        run(scatter, IN(picked, index, updates), &y[k]);
    }
    expect(&y[1], y[0].data, ALL);
}
END_TEST

START_TEST(elementwise_broadcasts)
{
    struct tensor y = RESULT(DT_F32, DIMS(2, 3)), z = RESULT(DT_F32, DIMS(0, 3));
    run(node_new("", "Sub"), IN(F32(DIMS(2, 1), 10, 20), F32(DIMS(3), 1, 2, 3)), &y);
    EXPECT(y, 9, 8, 7, 19, 18, 17);
    run(node_new("", "Add"), IN(RESULT(DT_F32, DIMS(0, 3)), F32(DIMS(3), 1, 2, 3)), &z);
    run(node_new("", "Where"), IN(BOOL(DIMS(3), 1, 0, 1), F32(DIMS(2, 1), 5, 6), F32(DIMS(1), 0)), &y);
    EXPECT(y, 5, 0, 5, 6, 0, 6);
}
END_TEST

/* Rows of every length around the joined lengths, with an operand of one row for all of them, on either side. */
START_TEST(short_rows_that_repeat)
{
    enum { ROWS = 301 };
    static const enum dtype types[] = {DT_F32, DT_F16, DT_I32};
    static const int lengths[] = {1, 2, 3, 4, 7, 16, 31, 100, 255, 256, 257};
    int n = lengths[_i];
    struct tensor x = RESULT(DT_F32, DIMS(2, ROWS, n)), row = RESULT(DT_F32, DIMS(n)), want = RESULT(DT_F32, DIMS(2, ROWS, n));
    srand((unsigned)_i);
    for (int i = 0; i < 2 * ROWS * n; i++)
        ((float *)x.data)[i] = (float)(rand() % 64);
    for (int i = 0; i < n; i++)
        ((float *)row.data)[i] = (float)(rand() % 64);
    for (int k = 0; k < 6; k++) {
        struct tensor in[2] = {RESULT(types[k / 2], DIMS(2, ROWS, n)), RESULT(types[k / 2], DIMS(n))},
                      y = RESULT(types[k / 2], DIMS(2, ROWS, n)), got = RESULT(DT_F32, DIMS(2, ROWS, n));
        struct node *to = node_new("", "Cast"), *back = node_new("", "Cast");
        attr_set_int(to, "to", (int64_t)types[k / 2]);
        attr_set_int(back, "to", DT_F32);
        run(to, IN(x), &in[0]);
        run(to, IN(row), &in[1]);
        run(node_new("", "Sub"), IN(in[k % 2], in[!(k % 2)]), &y);
        run(back, IN(y), &got);
        for (int i = 0; i < 2 * ROWS * n; i++)
            ((float *)want.data)[i] = (((float *)x.data)[i] - ((float *)row.data)[i % n]) * (float)(k % 2 ? -1 : 1);
        expect(&got, want.data, 2 * ROWS * n);
    }
}
END_TEST

START_TEST(functions_at_their_edges)
{
    struct tensor x = F32(DIMS(6), 0, 1, -1, INFINITY, -INFINITY, NAN), y = RESULT(DT_F32, DIMS(6));
    run(node_new("", "Exp"), IN(x), &y);
    EXPECT(y, 1, 2.71828183f, 0.36787944f, INFINITY, 0, NAN);
    run(node_new("", "Tanh"), IN(x), &y);
    EXPECT(y, 0, 0.76159416f, -0.76159416f, 1, -1, NAN);
    run(node_new("", "Erf"), IN(x), &y);
    EXPECT(y, 0, 0.84270079f, -0.84270079f, 1, -1, NAN);
    run(node_new("", "Sigmoid"), IN(x), &y);
    EXPECT(y, 0.5f, 0.73105858f, 0.26894142f, 1, 0, NAN);
    run(node_new("", "Softplus"), IN(x), &y);
    EXPECT(y, 0.69314718f, 1.31326169f, 0.31326169f, INFINITY, 0, NAN);
    run(node_new("", "Mish"), IN(F32(DIMS(6), 0, 1, -1, 40, -40, NAN)), &y);
    EXPECT(y, 0, 0.86509839f, -0.30340146f, 40, 0, NAN);
    run(node_new("", "Relu"), IN(x), &y);
    EXPECT(y, 0, 1, 0, INFINITY, 0, NAN);
}
END_TEST

START_TEST(integers)
{
    struct tensor y = RESULT(DT_I64, DIMS(4));
    const int64_t *out = y.data;
    struct tensor a = I64(DIMS(4), 7, -7, 7, -7), b = I64(DIMS(4), 3, 3, -3, -3);
    run(node_new("", "Div"), IN(a, b), &y);
    ck_assert(out[0] == 2 && out[1] == -2 && out[2] == -2 && out[3] == 2);
    run(node_new("", "Mod"), IN(a, b), &y);
    ck_assert(out[0] == 1 && out[1] == 2 && out[2] == -2 && out[3] == -1);
    run(node_new("", "Div"), IN(I64(DIMS(1), INT64_MIN), I64(DIMS(1), -1)), &y);
    ck_assert(out[0] == INT64_MIN);
}
END_TEST

START_TEST(division_by_zero)
{
    struct tensor y = RESULT(DT_I64, DIMS(2));
    run(node_new("", "Div"), IN(I64(DIMS(2), 1, 2), I64(DIMS(2), 1, 0)), &y);
}
END_TEST

START_TEST(casts)
{
    struct tensor h = RESULT(DT_F16, DIMS(5)), y = RESULT(DT_F32, DIMS(5)), i = RESULT(DT_I8, DIMS(5));
    struct tensor x = F32(DIMS(5), 1.0009766f, 65520, 5.9604645e-8f, NAN, -2);
    run(node_new("", "Cast"), IN(x), &h);
    const uint16_t want[] = {0x3c01, 0x7c00, 0x0001, 0x7e00, 0xc000};
    ck_assert_mem_eq(h.data, want, sizeof want);
    run(node_new("", "Cast"), IN(h), &y);
    EXPECT(y, 1.0009766f, INFINITY, 5.9604645e-8f, NAN, -2);
    run(node_new("", "Cast"), IN(F32(DIMS(5), 300, -300, 1.9f, -1.9f, NAN)), &i);
    const int8_t small[] = {127, -128, 1, -1, 0};
    ck_assert_mem_eq(i.data, small, sizeof small);
}
END_TEST

/* An element's position changes none of its bits: vectors and the remainder compute alike. */
static void check_places(const struct op *op, int64_t n)
{
    struct tensor x = RESULT(DT_F32, DIMS(n)), y = RESULT(DT_F32, DIMS(n)), z = RESULT(DT_F32, DIMS(n)), one = RESULT(DT_F32, DIMS(1));
    struct node *node = graph_node(graph, op, op->name, 0, NULL, 1);
    for (int64_t i = 0; i < n; i++) {
        ((float *)x.data)[i] = 7.0f * sinf((float)(i * i));
        ((float *)y.data)[i] = 0.1f + fabsf(3.0f * cosf((float)i));
    }
    run(node, op->nin, (struct tensor[]){x, y}, &z);
    for (int64_t i = 0; i < n; i++) {
        run(node, op->nin,
            (struct tensor[]){tensor_new(DT_F32, DIMS(1), (float *)x.data + i), tensor_new(DT_F32, DIMS(1), (float *)y.data + i)}, &one);
        ck_assert_msg(memcmp(one.data, (float *)z.data + i, sizeof(float)) == 0, "%s: element %d of %d alone is another number", op->name,
                      (int)i, (int)n);
    }
}

START_TEST(places)
{
    static const int64_t sizes[] = {8, 13, 25, 40, 63, 77};
    int ops = 0;
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        bool same = strcmp(op->infer_name, "same") == 0 || strcmp(op->infer_name, "broadcast") == 0 || strcmp(op->infer_name, "pow") == 0;
        bool whole = strcmp(op->name, "Not") == 0 || strcmp(op->name, "Mod") == 0 || strncmp(op->name, "Bit", 3) == 0;
        if (!(op->flags & OP_ELEMENTWISE) || (op->flags & OP_INTERNAL) || !op->kernel || !same || whole || op->nin > 2 ||
            op->in[0].variadic)
            continue;
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_places(op, sizes[k]);
        ops++;
    }
    ck_assert_int_gt(ops, 40);
}
END_TEST

/* Deterministic products: parts of the contracted dimension, split in any way that divides no chunk, give the bits of the whole. */
enum { HEIGHT = 7, WIDTH = 40, DEPTH = 300, MOST_TERMS = 64 };
struct batch_shard {
    struct share share;
    int n;
    struct subtree of[MOST_TERMS];
    float *term[MOST_TERMS];
};

static void take_terms(const struct share *share, const struct chunks *c, enum dtype t, const void *terms, int64_t n, void *out)
{
    struct batch_shard *d = (struct batch_shard *)(uintptr_t)share;
    int count = chunk_partials(c, d->of + d->n);
    ck_assert_int_eq(t, DT_F32);
    for (int i = 0; i < count; i++, d->n++) {
        d->term[d->n] = memcpy(arena_alloc(arena, (size_t)n * sizeof(float)), (const float *)terms + i * n, (size_t)n * sizeof(float));
        for (int k = d->n; k > 0 && subtree_before(&d->of[k], &d->of[k - 1]); k--) {
            struct subtree s = d->of[k];
            float *term = d->term[k];
            d->of[k] = d->of[k - 1];
            d->term[k] = d->term[k - 1];
            d->of[k - 1] = s;
            d->term[k - 1] = term;
        }
    }
    memset(out, 0, (size_t)n * sizeof(float));
}

/* Columns of a and rows of b that one rank holds. */
static void run_part(struct kenv *own, const struct tensor *a, const struct tensor *b, struct tensor *y, struct share *share, int n,
                     const struct interval *held)
{
    int64_t k = 0;
    float left[HEIGHT * DEPTH], right[DEPTH * WIDTH];
    for (int i = 0; i < n; i++)
        for (int64_t l = held[i].lo; l < held[i].hi; l++, k++)
            memcpy(right + k * WIDTH, (float *)b->data + l * WIDTH, WIDTH * sizeof(float));
    for (int64_t row = 0, at = 0; row < HEIGHT; row++)
        for (int i = 0; i < n; i++)
            for (int64_t l = held[i].lo; l < held[i].hi; l++)
                left[at++] = ((float *)a->data)[row * DEPTH + l];
    struct tensor in[2] = {tensor_new(DT_F32, DIMS(HEIGHT, k), left), tensor_new(DT_F32, DIMS(k, WIDTH), right)};
    struct kcall call = {
        .node = node_new("", "MatMul"), .graph = graph, .nin = 2, .nout = 1, .in = in, .out = y, .env = own, .share = share};
    call.node->op->kernel(&call);
}

START_TEST(sums_of_parts)
{
    static const struct {
        int ranks, n[3];
        struct interval at[3][2];
    } deals[] = {
        {2, {1, 1}, {{{0, 160}}, {{160, 300}}}},
        {3, {1, 1, 1}, {{{0, 16}}, {{16, 208}}, {{208, 300}}}},
        {3, {2, 0, 2}, {{{0, 48}, {256, 300}}, {{0, 0}}, {{48, 64}, {64, 256}}}},
        {2, {2, 1}, {{{240, 300}, {0, 112}}, {{112, 240}}}},
    };
    struct tensor a = RESULT(DT_F32, DIMS(HEIGHT, DEPTH)), b = RESULT(DT_F32, DIMS(DEPTH, WIDTH)),
                  whole = RESULT(DT_F32, DIMS(HEIGHT, WIDTH)), y = RESULT(DT_F32, DIMS(HEIGHT, WIDTH));
    struct kenv *own = kenv_new(1, true);
    for (int i = 0; i < HEIGHT * DEPTH; i++)
        ((float *)a.data)[i] = sinf((float)(i * i));
    for (int i = 0; i < DEPTH * WIDTH; i++)
        ((float *)b.data)[i] = cosf((float)(i * 3));
    ck_assert_int_eq(chunk_width(DEPTH), 16);
    run_part(own, &a, &b, &whole, NULL, 1, (const struct interval[]){{0, DEPTH}});
    for (size_t k = 0; k < sizeof deals / sizeof *deals; k++) {
        struct batch_shard d = {.share = {.size = DEPTH, .complete = take_terms}};
        for (int r = 0; r < deals[k].ranks; r++) {
            struct stretch held[2];
            d.share.n = chunk_stretches(deals[k].n[r], deals[k].at[r], held);
            d.share.at = held;
            run_part(own, &a, &b, &y, &d.share, deals[k].n[r], deals[k].at[r]);
        }
        chunk_add(d.of, (const void *const *)d.term, d.n, DT_F32, HEIGHT * WIDTH, y.data);
        ck_assert_msg(memcmp(y.data, whole.data, tensor_bytes(&y)) == 0, "split %d gives other bits", (int)k);
    }
    kenv_free(own);
}
END_TEST

START_TEST(moves)
{
    struct node *transpose = node_new("", "Transpose"), *slice = node_new("", "Slice"), *concat = node_new("", "Concat");
    struct tensor x = F32(DIMS(2, 3), 1, 2, 3, 4, 5, 6), t = RESULT(DT_F32, DIMS(3, 2)), s = RESULT(DT_F32, DIMS(2, 2));
    run(transpose, IN(x), &t);
    EXPECT(t, 1, 4, 2, 5, 3, 6);
    run(slice, IN(x, I64(DIMS(1), -1), I64(DIMS(1), -100), I64(DIMS(1), 1), I64(DIMS(1), -2)), &s);
    EXPECT(s, 3, 1, 6, 4);
    attr_set_int(concat, "axis", 1);
    struct tensor c = RESULT(DT_F32, DIMS(2, 4));
    run(concat, IN(x, RESULT(DT_F32, DIMS(2, 0)), F32(DIMS(2, 1), 7, 8)), &c);
    EXPECT(c, 1, 2, 3, 7, 4, 5, 6, 8);
}
END_TEST

START_TEST(repeats)
{
    struct node *repeat = node_new("tpc", "Repeat");
    struct tensor x = F32(DIMS(1, 2, 2), 1, 2, 3, 4), y = RESULT(DT_F32, DIMS(1, 4, 2)), z = RESULT(DT_F32, DIMS(1, 3, 2));
    attr_set_int(repeat, "axis", 1);
    attr_set_int(repeat, "repeats", 2);
    run(repeat, IN(x), &y);
    EXPECT(y, 1, 2, 1, 2, 3, 4, 3, 4);
    attr_set_ints(graph, repeat, "index", 3, (const int64_t[]){1, 0, 1});
    run(repeat, IN(x), &z);
    EXPECT(z, 3, 4, 1, 2, 3, 4);
}
END_TEST

START_TEST(gathers)
{
    struct tensor y = RESULT(DT_F32, DIMS(2, 2));
    run(node_new("", "Gather"), IN(F32(DIMS(3, 2), 1, 2, 3, 4, 5, 6), I64(DIMS(2), -1, 0)), &y);
    EXPECT(y, 5, 6, 1, 2);
}
END_TEST

START_TEST(gather_out_of_range)
{
    struct tensor y = RESULT(DT_F32, DIMS(1, 2));
    const struct type untyped = {.dtype = DT_NONE};
    struct value *in[2] = {graph_value(graph, "data", &untyped), graph_value(graph, "indices", &untyped)}; /* the message names one */
    run(graph_node(graph, op_find("", "Gather"), "Gather", 2, in, 1), IN(F32(DIMS(3, 2), 1, 2, 3, 4, 5, 6), I64(DIMS(1), 3)), &y);
}
END_TEST

START_TEST(reductions)
{
    struct tensor x = F32(DIMS(2, 3), 1, 2, 3, 4, 5, 6), y = RESULT(DT_F32, DIMS(2, 1)), z = RESULT(DT_F32, DIMS(1, 3)),
                  e = RESULT(DT_F32, DIMS(2, 1));
    run(node_new("", "ReduceMean"), IN(x, I64(DIMS(1), 1)), &y);
    EXPECT(y, 2, 5);
    run(node_new("", "ReduceMax"), IN(x, I64(DIMS(1), 0)), &z);
    EXPECT(z, 4, 5, 6);
    run(node_new("", "ReduceSum"), IN(RESULT(DT_F32, DIMS(2, 0)), I64(DIMS(1), 1)), &e);
    EXPECT(e, 0, 0);
    struct tensor c = RESULT(DT_F32, DIMS(2, 3));
    run(node_new("", "CumSum"), IN(x, I64(DIMS(1), 1)), &c);
    EXPECT(c, 1, 3, 6, 4, 9, 15);
}
END_TEST

/* A packed weight gives what an unpacked one gives, for several numbers of rows with one packed copy. */
START_TEST(products)
{
    struct tensor w = F32(DIMS(2, 3), 1, 2, 3, 4, 5, 6), y = RESULT(DT_F32, DIMS(1, 3)), z = RESULT(DT_F32, DIMS(2, 3));
    struct tensor none = F32(DIMS(1, 3), 9, 9, 9);
    const bool constant[] = {false, true};
    struct node *matmul = node_new("", "MatMul");
    void *cache = NULL;
    for (int i = 0; i < 2; i++) {
        run_constant(matmul, IN(F32(DIMS(1, 2), 1, 10), w), &y, constant, &cache);
        EXPECT(y, 41, 52, 63);
        run_constant(matmul, IN(F32(DIMS(2, 2), 1, 0, 0, 1), w), &z, constant, &cache);
        EXPECT(z, 1, 2, 3, 4, 5, 6);
    }
    run(matmul, IN(RESULT(DT_F32, DIMS(1, 0)), RESULT(DT_F32, DIMS(0, 3))), &none);
    EXPECT(none, 0, 0, 0);
}
END_TEST

/* Every number of a stored type, as a weight [1, 65536] of one row (read from storage) and of five (through panels): f32 as Cast makes it.
 * Instructions that multiply bf16 take subnormal numbers for zero. */
static void widen_all(enum dtype type, int64_t rows)
{
    enum { ALL = 65536 };
    struct tensor w = RESULT(type, DIMS(1, ALL)), wide = RESULT(DT_F32, DIMS(1, ALL)), a = RESULT(DT_F32, DIMS(rows, 1)),
                  y = RESULT(DT_F32, DIMS(rows, ALL));
    const bool constant[2] = {false, true};
    void *cache = NULL;
    for (int i = 0; i < ALL; i++)
        ((uint16_t *)w.data)[i] = (uint16_t)i;
    for (int64_t i = 0; i < rows; i++)
        ((float *)a.data)[i] = 1;
    run(node_new("", "Cast"), IN(w), &wide);
    run_constant(node_new("", "MatMul"), IN(a, w), &y, constant, &cache);
    for (int64_t i = 0; i < rows * ALL; i++) {
        float got = ((float *)y.data)[i], want = ((float *)wide.data)[i % ALL];
        bool flushed = type == DT_BF16 && got == 0 && fabsf(want) < FLT_MIN;
        ck_assert_msg(got == want || flushed || (isnan(got) && isnan(want)), "%s %#x is %g, not %g", dtype_name(type), (unsigned)(i % ALL),
                      (double)got, (double)want);
    }
}

START_TEST(stored_weights)
{
    enum { K = 19, N = 45 };
    const bool constant[2] = {false, true};
    for (int type = 0; type < 2; type++)
        for (int transposed = 0; transposed < 2; transposed++) {
            enum dtype dtype = type ? DT_BF16 : DT_F16;
            struct tensor f = transposed ? RESULT(DT_F32, DIMS(N, K)) : RESULT(DT_F32, DIMS(K, N)), w = f;
            struct tensor a = RESULT(DT_F32, DIMS(6, K)), y = RESULT(DT_F32, DIMS(6, N)), want = RESULT(DT_F32, DIMS(6, N));
            struct node *node = node_new("", "Gemm");
            void *cache = NULL;
            attr_set_int(node, "transB", transposed);
            w.dtype = dtype;
            w.data = arena_alloc(arena, tensor_bytes(&w));
            for (int i = 0; i < K * N; i++)
                ((float *)f.data)[i] = (float)(i * 37 % 127 - 63);
            for (int i = 0; i < 6 * K; i++)
                ((float *)a.data)[i] = (float)(i * 31 % 61 - 30);
            struct node *cast = node_new("", "Cast");
            attr_set_int(cast, "to", dtype);
            run(cast, IN(f), &w);
            run(node, IN(a, f), &want);
            for (int64_t rows = 1; rows <= 6; rows++) {
                a.dim[0] = y.dim[0] = rows;
                run_constant(node, IN(a, w), &y, constant, &cache);
                ck_assert_mem_eq(y.data, want.data, (size_t)rows * N * sizeof(float));
            }
        }
    widen_all(DT_F16, 1);
    widen_all(DT_F16, 5);
    widen_all(DT_BF16, 1);
    widen_all(DT_BF16, 5);
}
END_TEST

START_TEST(gemm)
{
    struct node *node = node_new("", "Gemm");
    struct tensor y = RESULT(DT_F32, DIMS(1, 2));
    attr_set_int(node, "transB", 1);
    run(node, IN(F32(DIMS(1, 2), 1, 10), F32(DIMS(2, 2), 1, 2, 3, 4), F32(DIMS(2), 100, 200)), &y);
    EXPECT(y, 121, 243);
}
END_TEST

START_TEST(softmax_of_masked_rows)
{
    struct tensor y = RESULT(DT_F32, DIMS(2, 2));
    run(node_new("", "Softmax"), IN(F32(DIMS(2, 2), -INFINITY, -INFINITY, -INFINITY, 3)), &y);
    EXPECT(y, NAN, NAN, 0, 1);
}
END_TEST

START_TEST(norms)
{
    struct tensor x = F32(DIMS(1, 2), 3, 4), y = RESULT(DT_F32, DIMS(1, 2));
    run(node_new("", "RMSNormalization"), IN(x, F32(DIMS(2), 1, 2)), &y);
    EXPECT(y, 0.84852780f, 2.2627408f);
    run(node_new("", "LayerNormalization"), IN(x, F32(DIMS(2), 1, 1), F32(DIMS(2), 0, 1)), &y);
    EXPECT(y, -0.99998f, 1.99998f);
}
END_TEST

START_TEST(attention_of_one_key)
{
    struct tensor y = RESULT(DT_F32, DIMS(1, 1, 2, 2)), q = F32(DIMS(1, 1, 2, 2), 1, 2, 3, 4), v = F32(DIMS(1, 1, 2, 2), 5, 6, 7, 8);
    struct tensor none = RESULT(DT_F32, DIMS(1, 0, 2, 2));
    struct node *node = node_new("", "Attention");
    attr_set_int(node, "is_causal", 1);
    run(node, IN(q, F32(DIMS(1, 1, 2, 2), 0, 0, 0, 0), v), &y);
    EXPECT(y, 5, 6, 6, 7);
    run(node, IN(q, q, v, BOOL(DIMS(2, 2), 0, 0, 1, 0)), &y);
    EXPECT(y, 0, 0, 5, 6);
    run(node, IN(none, none, none), &none);
}
END_TEST

/* Equal scores: each row's mean of the values that its mask leaves, row i those up to i / 2. Row 5 has none. */
static void masked_rows(float masked, float of_none)
{
    enum { ROWS = 70, KEYS = 100 };
    float want[ROWS];
    struct tensor q = RESULT(DT_F32, DIMS(1, 1, ROWS, 1)), k = RESULT(DT_F32, DIMS(1, 1, KEYS, 1)), v = RESULT(DT_F32, DIMS(1, 1, KEYS, 1));
    struct tensor mask = RESULT(DT_F32, DIMS(ROWS, KEYS)), y = RESULT(DT_F32, DIMS(1, 1, ROWS, 1));
    struct node *node = node_new("tpc", "FusedAttention");
    attr_set_ints(graph, node, "rows_first", 4, (const int64_t[]){0, 0, 0, 0});
    for (int j = 0; j < KEYS; j++)
        ((float *)v.data)[j] = (float)j;
    for (int i = 0; i < ROWS; i++) {
        want[i] = i == 5 ? of_none : (float)(i / 2) / 2;
        for (int j = 0; j < KEYS; j++)
            ((float *)mask.data)[i * KEYS + j] = i == 5 || j > i / 2 ? masked : 0;
    }
    run(node, IN(q, k, v, mask), &y);
    expect(&y, want, ROWS);
}

START_TEST(attention_of_masked_rows)
{
    masked_rows(-INFINITY, NAN);
    masked_rows(-FLT_MAX, 49.5f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = unit_case(suite, "kernels", setup, teardown);
    tcase_add_test(tests, a_weight_is_packed_once);
    tcase_add_loop_test(tests, indices_of_whole_rows, 0, 20);
    tcase_add_test(tests, elementwise_broadcasts);
    tcase_add_loop_test(tests, short_rows_that_repeat, 0, 11);
    tcase_add_test(tests, functions_at_their_edges);
    tcase_add_test(tests, integers);
    tcase_add_exit_test(tests, division_by_zero, 1);
    tcase_add_test(tests, casts);
    tcase_add_test(tests, places);
    tcase_add_test(tests, sums_of_parts);
    tcase_add_test(tests, moves);
    tcase_add_test(tests, repeats);
    tcase_add_test(tests, gathers);
    tcase_add_exit_test(tests, gather_out_of_range, 1);
    tcase_add_test(tests, reductions);
    tcase_add_test(tests, products);
    tcase_add_test(tests, stored_weights);
    tcase_add_test(tests, gemm);
    tcase_add_test(tests, softmax_of_masked_rows);
    tcase_add_test(tests, norms);
    tcase_add_test(tests, attention_of_one_key);
    tcase_add_test(tests, attention_of_masked_rows);
    return unit_run(suite);
}
