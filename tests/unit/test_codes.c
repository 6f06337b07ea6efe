/* Products by dots of 8-bit integers (kern/codes/codes.c), for random shapes, widths of codes, blocks and zero points, by every kernel that
 * this machine runs: within what rounding to digits leaves of the product in double, and the same for all kernels. */
#include "kern/codes/codes.h"
#include "kern/core/core.h"
#include "op/op.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

struct sample {
    int64_t m, n, k, block, blocks;
    int bits, digits, step;
    bool zeros, narrow; /* narrow: both operands are rounded to bf16 instead */
    uint8_t *codes, *zero;
    float *scale, *a;
};

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

static void sample_codes(const void *from, int64_t j, uint8_t *codes)
{
    const struct sample *s = from;
    memcpy(codes, s->codes + j * s->k, (size_t)s->k);
}

static void sample_scales(const void *from, int64_t j, float *scales)
{
    const struct sample *s = from;
    memcpy(scales, s->scale + j * s->blocks, (size_t)s->blocks * sizeof *scales);
}

static void sample_zeros(const void *from, int64_t j, uint8_t *zeros)
{
    const struct sample *s = from;
    memcpy(zeros, s->zero + j * s->blocks, (size_t)s->blocks);
}

static struct sample sample_of(struct arena *a, int number, int64_t m, int64_t n, int64_t k)
{
    static const int64_t blocks[] = {16, 32, 48, 64, 128};
    struct sample s = {.m = m, .n = n, .k = k, .block = blocks[draw(5)], .bits = 2 << draw(3)};
    s.zeros = draw(2);
    s.digits = 1 + number % 3;
    s.step = s.block % 32 ? 16 : 32;
    s.blocks = (s.k + s.block - 1) / s.block;
    s.codes = arena_alloc(a, (size_t)(s.n * s.k));
    s.zero = arena_alloc(a, (size_t)(s.n * s.blocks));
    s.scale = arena_alloc(a, (size_t)(s.n * s.blocks) * sizeof *s.scale);
    s.a = arena_alloc(a, (size_t)(s.m * s.k) * sizeof *s.a);
    for (int64_t i = 0; i < s.n * s.k; i++)
        s.codes[i] = (uint8_t)draw(1u << s.bits);
    for (int64_t i = 0; i < s.n * s.blocks; i++) {
        s.zero[i] = (uint8_t)(s.zeros ? draw(1u << s.bits) : 1u << (s.bits - 1));
        s.scale[i] = ((float)draw(1000) - 500) * 1e-4f;
    }
    for (int64_t i = 0; i < s.m * s.k; i++)
        s.a[i] = ((float)draw(20001) - 10000) * (draw(20) ? 1e-4f : 3e-3f);
    return s;
}

/* With up to `rows` rows and `depth` elements of k. */
static struct sample sample_new(struct arena *a, int number, uint32_t rows, uint32_t depth)
{
    int64_t m = 1 + draw(rows), n = 1 + draw(80);
    return sample_of(a, number, m, n, 1 + draw(depth));
}

/* c[i, j] in double, and by how much digits may miss it. */
static double exact(const struct sample *s, int64_t i, int64_t j, double *slack)
{
    static const double left[] = {0.5 / 127, 1.0 / 127 / 128, 1.0 / 127 / 128 / 128 + 0x1p-23};
    double sum = 0;
    *slack = 0;
    for (int64_t from = 0; from < s->k; from += s->step) {
        double most = 0, all = 0, bound = 0;
        for (int64_t l = from; l < s->k && l < from + s->step; l++) {
            int64_t block = j * s->blocks + l / s->block;
            double w = ((double)s->codes[j * s->k + l] - s->zero[block]) * s->scale[block], x = s->a[i * s->k + l];
            sum += w * x;
            all += fabs(w);
            bound += (double)s->codes[j * s->k + l] * fabs((double)s->scale[block]);
            most = fabs(x) > most ? fabs(x) : most;
            *slack += s->narrow ? fabs(w * x) * 0x1.02p-7 : 0;
        }
        *slack += most * ((s->narrow ? 0 : all * left[s->digits - 1]) + bound * 0x1p-20); /* and for sums in float32 */
    }
    return sum;
}

static void check_product(const struct sample *s, const float *c, const char *kernel)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double slack, want = exact(s, i, j, &slack), found = c[i * s->n + j];
            ck_assert_msg(fabs(found - want) <= slack,
                          "%s: m %lld n %lld k %lld block %lld bits %d digits %d zeros %d: %g at %lld %lld, not %g", kernel,
                          (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->block, s->bits, s->digits, s->zeros, found,
                          (long long)i, (long long)j, want);
        }
}

static const struct codes *sample_pack(struct kenv *env, const struct sample *s)
{
    struct codes_source from = {.n = s->n,
                                .k = s->k,
                                .block = s->block,
                                .bits = s->bits,
                                .zero = 1 << (s->bits - 1),
                                .zeros = s->zeros,
                                .from = s,
                                .read_codes = sample_codes,
                                .read_scales = sample_scales,
                                .read_zeros = sample_zeros};
    return codes_pack(&(struct kcall){.env = env}, &from);
}

/* Products by another kernel than the fastest. */
static void product_by(const struct codes_kernel *kernel, const struct sample *s, const struct codes *w, const struct codes_rows *rows,
                       float *c)
{
    int each = CODES_ROWS / s->digits;
    for (int64_t tile = 0; tile * CODES_WIDTH < s->n; tile++)
        for (int64_t i = 0; i < s->m; i++) {
            float sums[CODES_ROWS * CODES_WIDTH];
            int64_t left = s->m - i / each * each, count = left < each ? left : each;
            kernel->dot(w, tile, rows, i / each, (int)count * s->digits, sums, CODES_WIDTH);
            for (int64_t j = 0; j < CODES_WIDTH && tile * CODES_WIDTH + j < s->n; j++) {
                c[i * s->n + tile * CODES_WIDTH + j] = 0;
                for (int d = 0; d < s->digits; d++)
                    c[i * s->n + tile * CODES_WIDTH + j] += sums[(i % each * s->digits + d) * CODES_WIDTH + j];
            }
        }
}

static struct codes_rows sample_rows(struct arena *a, const struct sample *s, const struct codes *w)
{
    int64_t groups = (s->m * s->digits + CODES_ROWS - 1) / CODES_ROWS;
    struct codes_rows to = {
        .rows = s->m * s->digits, .each = CODES_ROWS, .padded = w->blocks * w->block, .steps = w->blocks * w->block / w->step};
    to.digit = arena_alloc(a, (size_t)(groups * CODES_ROWS * to.padded));
    to.scale = arena_alloc(a, (size_t)(groups * CODES_ROWS * to.steps) * sizeof *to.scale);
    to.start = arena_alloc(a, (size_t)(groups * CODES_ROWS * to.steps) * sizeof *to.start);
    for (int64_t i = 0; i < s->m; i++)
        codes_row(w, &to, s->digits, i, s->a + i * s->k);
    return to;
}

START_TEST(every_kernel_is_within_the_digits)
{
    struct arena *a = arena_new();
    struct kenv *env = kenv_new(2, false);
    state = (uint32_t)_i;
    for (int k = 0; k < 30; k++) {
        struct sample s = sample_new(a, k, 15, 300);
        const struct codes *w = sample_pack(env, &s);
        struct codes_rows rows = sample_rows(a, &s, w);
        float *c = arena_alloc(a, (size_t)(s.m * s.n) * sizeof *c);
        codes_product(&(struct kcall){.env = env}, w, s.m, s.digits, s.a, c);
        check_product(&s, c, "product");
        ISA_EACH(codes_kernel, kernel, codes_kernels)
        {
            product_by(kernel, &s, w, &rows, c);
            check_product(&s, c, isa_name(kernel->isa));
        }
    }
    kenv_free(env);
    arena_free(a);
}
END_TEST

/* A stretch of k and more, tiles that are not full; at last, more rows than stay in the cache. */
START_TEST(many_rows_are_rounded_to_bf16)
{
    struct arena *a = arena_new();
    struct kenv *env = kenv_new(2, false);
    state = (uint32_t)_i + 50;
    for (int k = 0; k < 31; k++) {
        struct sample s = k < 30 ? sample_new(a, 0, 70, k % 10 ? 300 : 3200) : sample_of(a, 0, 150, 3, 4700);
        const struct codes *w = sample_pack(env, &s);
        float *c = arena_alloc(a, (size_t)(s.m * s.n) * sizeof *c);
        s.narrow = true;
        ISA_EACH(codes_panel_kernel, kernel, codes_panel_kernels)
        {
            codes_many(&(struct kcall){.env = env}, kernel, w, s.m, s.a, c);
            check_product(&s, c, isa_name(kernel->isa));
        }
    }
    kenv_free(env);
    arena_free(a);
}
END_TEST

START_TEST(every_kernel_decodes_panels)
{
    enum { MOST = 256 };
    static uint16_t plain[MOST * CODES_WIDTH], found[MOST * CODES_WIDTH];
    struct arena *a = arena_new();
    struct kenv *env = kenv_new(1, false);
    state = (uint32_t)_i + 70;
    for (int round = 0; round < 30; round++) {
        struct sample s = sample_new(a, 0, 15, 300);
        const struct codes *w = sample_pack(env, &s);
        int64_t units = w->blocks * w->block / 16, from = draw((uint32_t)units), n = 1 + draw((uint32_t)(units - from)),
                tile = (s.n - 1) / CODES_WIDTH;
        n = n > MOST / 16 ? MOST / 16 : n;
        size_t numbers = (size_t)((n + 1) / 2 * CODES_DEPTH * CODES_WIDTH);
        const struct codes_panel_kernel *last = codes_panel_kernels;
        while (last->isa != ISA_PLAIN)
            last++;
        last->decode(&(struct codes_part){w, tile, from * 16, n * 16, plain});
        ISA_EACH(codes_panel_kernel, kernel, codes_panel_kernels)
        {
            memset(found, 255, sizeof found);
            kernel->decode(&(struct codes_part){w, tile, from * 16, n * 16, found});
            for (size_t i = 0; i < numbers; i++) /* 0 may have a sign */
                ck_assert_int_eq(found[i] & (found[i] << 1 & 65535 ? 65535 : 32767), plain[i] & (plain[i] << 1 & 65535 ? 65535 : 32767));
        }
    }
    kenv_free(env);
    arena_free(a);
}
END_TEST

/* The digits of step p of row i, one number after another: those that codes_row placed? */
static void check_step(const struct sample *s, const struct codes *w, const struct codes_rows *rows, int64_t i, int64_t p)
{
    float left[CODES_STEP] = {0}, most = 0, scale;
    for (int64_t l = 0; l < s->step && p * s->step + l < s->k; l++) {
        left[l] = s->a[i * s->k + p * s->step + l];
        most = fabsf(left[l]) > most ? fabsf(left[l]) : most;
    }
    scale = most / 127;
    int power;
    if (s->digits > 1 && most > 0)
        scale = frexpf(scale, &power) > 0.5f ? ldexpf(1, power) : scale;
    for (int l = 0; l < s->step; l++)
        left[l] = most > 0 ? left[l] * (1 / scale) : 0;
    for (int64_t row = i * s->digits; row < (i + 1) * s->digits; row++) {
        int64_t group = row / CODES_ROWS, at = (group * rows->steps + p) * CODES_ROWS + row % CODES_ROWS;
        int sum = 0;
        for (int l = 0; l < s->step; l++) {
            float digit = nearbyintf(left[l]);
            int64_t word = group * rows->padded / 4 + (p * s->step + l) / 4;
            ck_assert_int_eq(rows->digit[(word * CODES_ROWS + row % CODES_ROWS) * 4 + l % 4], (int)digit);
            sum += (int)digit;
            left[l] = (left[l] - digit) * 128;
        }
        ck_assert(rows->scale[at] == (most > 0 ? scale : 0));
        ck_assert_int_eq(rows->start[at], -sum * (w->zeros ? 1 : w->zero));
        scale /= 128;
    }
}

/* Rows shorter and longer than what is coded at a time, with steps of zeros, bit for bit. */
START_TEST(rows_are_digits)
{
    struct arena *a = arena_new();
    state = (uint32_t)_i;
    for (int k = 0; k < 30; k++) {
        struct sample s = sample_new(a, k, 15, 300);
        s.k = s.k * s.m;
        s.m = 1 + s.n % 2;
        s.a = arena_alloc(a, (size_t)(s.m * s.k) * sizeof *s.a);
        for (int64_t i = 0; i < s.m * s.k; i++)
            s.a[i] = i / 100 % 4 ? ((float)draw(20001) - 10000) * (draw(20) ? 1e-4f : 3e-3f) : 0;
        s.blocks = (s.k + s.block - 1) / s.block;
        struct codes w = {.k = s.k, .block = s.block, .blocks = s.blocks, .step = s.step, .zero = 7, .zeros = s.zeros ? s.zero : NULL};
        struct codes_rows rows = sample_rows(a, &s, &w);
        for (int64_t i = 0; i < s.m; i++)
            for (int64_t p = 0; p < rows.steps; p++)
                check_step(&s, &w, &rows, i, p);
    }
    arena_free(a);
}
END_TEST

/* One step of activations, times ones. */
static float product_of_row(int digits, const float *a, int64_t n)
{
    uint8_t codes[64], zero = 0;
    float scale[2] = {1, 1}, c;
    struct kenv *env = kenv_new(1, false);
    memset(codes, 2, sizeof codes);
    struct sample s = {
        .m = 1, .n = 1, .k = n, .block = 32, .blocks = (n + 31) / 32, .bits = 2, .codes = codes, .zero = &zero, .scale = scale};
    struct codes_source from = {
        .n = 1, .k = n, .block = 32, .bits = 2, .zero = 1, .from = &s, .read_codes = sample_codes, .read_scales = sample_scales};
    codes_product(&(struct kcall){.env = env}, codes_pack(&(struct kcall){.env = env}, &from), 1, digits, a, &c);
    kenv_free(env);
    return c;
}

START_TEST(special_numbers)
{
    for (int digits = 1; digits <= 3; digits++) {
        ck_assert(isnan(product_of_row(digits, (float[]){1, INFINITY, 2}, 3)));
        ck_assert(isnan(product_of_row(digits, (float[]){1, NAN, 2}, 3)));
        ck_assert(isnan(product_of_row(digits, (float[]){-INFINITY}, 1)));
        ck_assert(product_of_row(digits, (float[]){0, -0.0f, 1e-42f}, 3) <= 1e-40f);
        ck_assert_float_eq_tol(product_of_row(digits, (float[]){3e38f, -3e38f, 3e37f, 1e30f}, 4), 3e37f, digits == 1 ? 2e36f : 3e34f);
    }
}
END_TEST

/* ---- ops: with a constant weight by codes, else decoded to float32 ------------------------------------------------------------------- */

struct form {
    const char *domain, *op;
    struct arena *arena;
    struct graph *graph;
    struct kenv *env;
    struct node *node;
    int nin;
    struct tensor in[6], out;
};

static struct tensor *operand(struct form *f, enum dtype dtype, int rank, const int64_t *dim)
{
    struct tensor *t = &f->in[f->nin++];
    *t = (struct tensor){.dtype = dtype, .rank = rank, .packed = dtype_is_packed(dtype)};
    memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    uint8_t *data = t->data = arena_alloc(f->arena, (size_t)tensor_elements(t) * 4 + 1);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        if (dtype == DT_F32)
            ((float *)t->data)[i] = ((float)draw(2001) - 1000) * 1e-3f;
        else
            data[i] = (uint8_t)draw(256);
    return t;
}

static struct form form_new(const char *domain, const char *op)
{
    struct form f = {.arena = arena_new(), .env = kenv_new(2, false)};
    f.graph = graph_new(f.arena, alg_new(f.arena), "test");
    struct value *v = graph_value(f.graph, "v", &(struct type){.dtype = DT_F32});
    f.node = graph_node(f.graph, op_find(domain, op), op, 6, (struct value *[]){v, v, v, v, v, v}, 1);
    return f;
}

static float *form_run(const struct form *f, void **cache)
{
    struct tensor out = f->out;
    struct kcall call = {.node = f->node,
                         .graph = f->graph,
                         .nin = f->nin,
                         .nout = 1,
                         .in = f->in,
                         .out = &out,
                         .env = f->env,
                         .in_constant = (bool[]){false, true, true, true, true, true},
                         .cache = cache};
    out.data = arena_alloc(f->arena, tensor_bytes(&out) + 1);
    f->node->op->kernel(&call);
    return out.data;
}

/* codes: whether the weight may lie in tiles. */
static void form_check(struct form *f, int64_t m, int64_t n, bool codes)
{
    void *cache = NULL;
    f->out = (struct tensor){.dtype = DT_F32, .rank = 2, .dim = {m, n}};
    struct form exact = *f;
    exact.env = kenv_new(2, true);
    float *want = form_run(&exact, NULL), *found = form_run(f, &cache), most = 0;
    ck_assert_int_eq(cache != NULL, codes && (codes_fast() || attr_int(f->node, "accuracy_level") == 4));
    for (int64_t i = 0; i < m * n; i++)
        most = fabsf(want[i]) > most ? fabsf(want[i]) : most;
    for (int64_t i = 0; i < m * n; i++)
        ck_assert_float_eq_tol(found[i], want[i], most * (attr_int(f->node, "accuracy_level") == 4 ? 2e-2f : 1e-5f));
    kenv_free(exact.env);
    kenv_free(f->env);
    arena_free(f->arena);
}

START_TEST(matmul_nbits_reads_its_weight)
{
    state = (uint32_t)_i + 100;
    for (int i = 0; i < 24; i++) {
        struct form f = form_new("com.microsoft", "MatMulNBits");
        int64_t bits = 2 << draw(3), block = 16 << draw(4), m = 1 + draw(draw(2) ? 9 : 50), n = 1 + draw(40), k = 1 + draw(200),
                blocks = (k + block - 1) / block;
        operand(&f, DT_F32, 2, (int64_t[]){m, k});
        operand(&f, DT_U8, 3, (int64_t[]){n, blocks, block * bits / 8});
        operand(&f, DT_F32, 2, (int64_t[]){n, blocks});
        if (draw(2))
            operand(&f, DT_U8, 2, (int64_t[]){n, (blocks * bits + 7) / 8});
        attr_set_int(f.node, "K", k);
        attr_set_int(f.node, "N", n);
        attr_set_int(f.node, "bits", bits);
        attr_set_int(f.node, "block_size", block);
        attr_set_int(f.node, "accuracy_level", draw(2) ? 4 : 0);
        form_check(&f, m, n, n * k > 256); /* a short one is decoded to float32 */
    }
}
END_TEST

/* Scales: one, of columns, of rows, or of blocks along either dimension. */
START_TEST(quant_matmul_reads_its_weight)
{
    static const enum dtype types[] = {DT_I8, DT_U8, DT_I4, DT_U4, DT_I2, DT_U2, DT_I16};
    state = (uint32_t)_i + 200;
    for (int i = 0; i < 40; i++) {
        struct form f = form_new("tpc", "QuantMatMul");
        enum dtype type = types[draw(COUNT(types))];
        int64_t block = draw(2) ? 16 << draw(2) : 0, m = 1 + draw(9), n = 1 + draw(40), k = 1 + draw(200), transposed = draw(2),
                axis = draw(2);
        int64_t dim[2] = {transposed ? n : k, transposed ? k : n}, size[2] = {dim[0], dim[1]};
        int rank = block ? 2 : (int)draw(2);
        if (block)
            size[axis] = (size[axis] + block - 1) / block;
        operand(&f, DT_F32, 2, (int64_t[]){m, k});
        operand(&f, type, 2, dim);
        operand(&f, DT_F32, rank, rank == 1 ? dim + axis : size);
        if (draw(2))
            operand(&f, type, rank, rank == 1 ? dim + axis : size);
        attr_set_int(f.node, "axis", draw(2) ? axis : axis - 2);
        attr_set_int(f.node, "block_size", block);
        attr_set_int(f.node, "transposed", transposed);
        bool one = !block && tensor_elements(&f.in[2]) == 1, along_k = axis == transposed;
        form_check(&f, m, n, type != DT_I16 && (one || (block != 0) == along_k));
    }
}
END_TEST

/* ---- integers ------------------------------------------------------------------------------------------------------------------------ */

static int64_t number(const struct tensor *t, int64_t i)
{
    uint8_t x = ((const uint8_t *)t->data)[i];
    return t->dtype == DT_I8 ? (int8_t)x : x;
}

static int64_t zero_of(const struct tensor *t, int64_t i)
{
    return t->rank < 0 ? 0 : number(t, i % tensor_elements(t));
}

/* Operand i: A [m, k], B [k, n] ([n, k] when transposed), and their zero points. */
static int32_t exact_integer(const struct form *f, bool transposed, int64_t i, int64_t j)
{
    const struct tensor *a = &f->in[0], *b = &f->in[1];
    int64_t k = a->dim[1], sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += (number(a, i * k + l) - zero_of(&f->in[2], i)) *
            (number(b, transposed ? j * k + l : l * b->dim[1] + j) - zero_of(&f->in[3], j));
    return (int32_t)sum;
}

static void zero_points(struct form *f, enum dtype dtype, int64_t n)
{
    static const int64_t one = 1;
    uint32_t form = draw(3);
    if (form == 2) {
        f->node->in[f->nin] = NULL;
        f->in[f->nin++] = (struct tensor){.rank = -1};
    } else
        operand(f, dtype, 1, form ? &n : &one);
}

static void check_integers(struct form *f, bool transposed, bool scaled, void **cache)
{
    const void *y = form_run(f, cache);
    for (int64_t i = 0; i < f->out.dim[0]; i++)
        for (int64_t j = 0; j < f->out.dim[1]; j++) {
            int64_t at = i * f->out.dim[1] + j;
            int32_t want = exact_integer(f, transposed, i, j);
            if (scaled) {
                const float *scale = f->in[4].data, *bias = f->in[5].data;
                float product = (float)want * scale[j % tensor_elements(&f->in[4])], real = product + bias[j];
                ck_assert_mem_eq((const float *)y + at, &real, sizeof real);
            } else
                ck_assert_int_eq(((const int32_t *)y)[at], want);
        }
}

/* Any signs and zero points, a matrix that is packed once or at every call. */
START_TEST(integers_are_exact)
{
    state = (uint32_t)_i + 300;
    for (int i = 0; i < 30; i++) {
        bool scaled = draw(2), transposed = scaled && draw(2);
        struct form f = form_new(scaled ? "tpc" : "", scaled ? "IntegerMatMul" : "MatMulInteger");
        enum dtype type[2] = {draw(2) ? DT_I8 : DT_U8, draw(2) ? DT_I8 : DT_U8};
        int64_t m = 1 + draw(draw(2) ? 15 : 80), n = 1 + draw(80), k = draw(300);
        void *cache = NULL;
        operand(&f, type[0], 2, (int64_t[]){m, k});
        operand(&f, type[1], 2, (int64_t[]){transposed ? n : k, transposed ? k : n});
        zero_points(&f, type[0], m);
        zero_points(&f, type[1], n);
        f.out = (struct tensor){.dtype = scaled ? DT_F32 : DT_I32, .rank = 2, .dim = {m, n}};
        if (scaled) {
            operand(&f, DT_F32, 1, draw(2) ? &n : (int64_t[]){1});
            operand(&f, DT_F32, 1, &n);
            attr_set_int(f.node, "transposed", transposed);
        }
        check_integers(&f, transposed, scaled, NULL);
        check_integers(&f, transposed, scaled, &cache);
        ck_assert_ptr_nonnull(cache);
        kenv_free(f.env);
        arena_free(f.arena);
    }
}
END_TEST

/* Sums of all numbers, by every kernel: beyond 2^31, too. */
static void check_sums(struct kenv *env, struct arena *a, int64_t k, int rows, int bits)
{
    int64_t padded = (k + 31) / 32 * 32;
    int code = (1 << bits) - 1;
    struct sample s = {.n = 3, .k = k, .bits = bits, .codes = arena_alloc(a, (size_t)(3 * k))};
    struct codes_source from = {
        .n = 3, .k = k, .block = padded, .bits = bits, .zero = 1, .integers = true, .from = &s, .read_codes = sample_codes};
    memset(s.codes, code, (size_t)(3 * k));
    const struct codes *w = codes_pack(&(struct kcall){.env = env}, &from);
    ISA_EACH(codes_whole_kernel, kernel, codes_whole_kernels)
    {
        if (kernel->bytes && bits < 8)
            continue;
        int most = rows < kernel->rows ? rows : kernel->rows;
        int32_t sums[CODES_WHOLE_ROWS * CODES_WIDTH];
        int8_t *digit = malloc((size_t)(padded * most)); /* none is read beyond them */
        for (int i = 0; i < most; i++)
            memset(digit + i * padded, 127 - i, (size_t)padded);
        kernel->whole(w, 0, digit, most, sums, CODES_WIDTH);
        free(digit);
        for (int i = 0; i < most; i++)
            for (int j = 0; j < CODES_WIDTH; j++)
                ck_assert_int_eq(sums[i * CODES_WIDTH + j], j < 3 ? (int32_t)(code * (127 - i) * k) : 0);
    }
    ck_assert_int_eq(w->sums[2], (int32_t)((code - 1) * k));
    ck_assert(bits == 8 || !codes_whole_best(w, rows)->bytes);
}

START_TEST(every_kernel_sums_integers)
{
    static const int64_t k[] = {70000, 1, 32, 40, 64, 96, 100, 128, 160};
    struct kenv *env = kenv_new(1, false);
    struct arena *a = arena_new();
    for (int i = 0; i < COUNT(k); i++)
        for (int rows = 1; rows <= CODES_WHOLE_ROWS; rows += 1 + rows % 5)
            check_sums(env, a, k[i], rows, i < COUNT(k) - 1 ? 8 : 4);
    arena_free(a);
    kenv_free(env);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codes");
    TCase *t = unit_case(suite, "codes", NULL, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, every_kernel_is_within_the_digits, 1, 9);
    tcase_add_loop_test(t, many_rows_are_rounded_to_bf16, 0, 4);
    tcase_add_loop_test(t, every_kernel_decodes_panels, 0, 4);
    tcase_add_loop_test(t, rows_are_digits, 0, 4);
    tcase_add_test(t, special_numbers);
    tcase_add_loop_test(t, matmul_nbits_reads_its_weight, 0, 4);
    tcase_add_loop_test(t, quant_matmul_reads_its_weight, 0, 4);
    tcase_add_loop_test(t, integers_are_exact, 0, 4);
    tcase_add_test(t, every_kernel_sums_integers);
    return unit_run(suite);
}
