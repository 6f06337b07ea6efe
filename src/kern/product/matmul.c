/* matmul: MatMul in all forms of numpy, and Gemm.
 *
 * f32 uses oneDNN: a weight as right operand is packed once per node, everything else is one sgemm per batch element, in parallel over the
 * batch if it is large enough. f16 and bf16 are multiplied in f32 and rounded once: a weight is read in its stored type (packed_gemm.c),
 * also with an f32 left operand; other operands are converted. If the processor multiplies bf16, oneDNN does, too, with both operands in
 * bf16: for bf16 weights, and under --fast for all weights. f64 and integers are plain loops with sums in f64 and modulo 2^64. In
 * deterministic mode, sums are computed chunk by chunk (chunk_gemm.c) instead of by oneDNN. */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "kern/product/product.h"

#include <string.h>

/* ---- one product of any type: c[m, n] = a[m, k] b[k, n], operands transposed by strides -------------------------------------- */
struct view {
    const void *at;
    int64_t row, column;
};
struct plain {
    enum dtype dtype;
    int64_t m, n, k;
    struct view a, b;
    void *c;
};

#define PLAIN_ROW(T, load, store)                                                                   \
    do {                                                                                            \
        T x, y, sum = 0;                                                                            \
        for (int64_t l = 0; l < p->k; l++) {                                                        \
            load(p->dtype, element_at_const(p->a.at, size, i * p->a.row + l * p->a.column), 1, &x); \
            load(p->dtype, element_at_const(p->b.at, size, l * p->b.row + j * p->b.column), 1, &y); \
            sum += x * y;                                                                           \
        }                                                                                           \
        store(p->dtype, &sum, 1, element_at(p->c, size, i * p->n + j));                             \
    } while (0)

static void plain_range(void *data, int64_t lo, int64_t hi)
{
    const struct plain *p = data;
    size_t size = dtype_size(p->dtype);
    for (int64_t at_c = lo; at_c < hi; at_c++) {
        int64_t i = at_c / p->n, j = at_c % p->n;
        if (dtype_is_float(p->dtype))
            PLAIN_ROW(double, convert_to_f64, convert_from_f64);
        else
            PLAIN_ROW(uint64_t, convert_to_u64, convert_from_u64);
    }
}

static void plain_product(struct kenv *env, struct plain p)
{
    kenv_parallel_for(env, p.m * p.n, 4 * p.k, plain_range, &p);
}

/* ---- MatMul --------------------------------------------------------------------------------------------------------------------- */
struct matmul_call {
    struct kcall *call;
    int64_t m, n, k, batch;                                    /* a: m x k, b: k x n, per batch element */
    int rank;                                                  /* batch dimensions, merged if both operands allow it */
    int64_t dim[MAX_RANK], a_step[MAX_RANK], b_step[MAX_RANK]; /* in matrices */
    const float *a, *b;
    float *c;
};

/* Batch dimension d of t, numbered as in the result; 1 if t lacks it. */
static int64_t batch_dim(const struct tensor *t, int rank, int d)
{
    int e = d - (rank - (t->rank - 2));
    return t->rank < 2 || e < 0 ? 1 : t->dim[e];
}

static void product_batch(struct matmul_call *p, const struct tensor *a, const struct tensor *b)
{
    int rank = a->rank > b->rank ? a->rank - 2 : b->rank - 2;
    int64_t na = 1, nb = 1;
    p->rank = rank < 0 ? 0 : rank;
    p->batch = 1;
    for (int d = p->rank - 1; d >= 0; d--) {
        int64_t da = batch_dim(a, p->rank, d), db = batch_dim(b, p->rank, d);
        if (da != db && da != 1 && db != 1)
            fail("%s: batch sizes %lld and %lld do not broadcast", kcall_where(p->call), (long long)da, (long long)db);
        p->dim[d] = da == 1 ? db : da;
        p->a_step[d] = da == 1 ? 0 : na;
        p->b_step[d] = db == 1 ? 0 : nb;
        na *= da;
        nb *= db;
        p->batch *= p->dim[d];
    }
}

/* Whether an f32 product may read a weight in its stored type (lower/quantized/fuse_weights.c). */
static bool types_fit(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype || (a->dtype == DT_F32 && dtype_is_half(b->dtype));
}

static void product_shape(struct matmul_call *p, const struct tensor *a, const struct tensor *b)
{
    if (a->rank < 1 || b->rank < 1)
        fail("%s: operands must have rank 1 or more", kcall_where(p->call));
    p->m = a->rank == 1 ? 1 : a->dim[a->rank - 2];
    p->k = a->dim[a->rank - 1];
    p->n = b->rank == 1 ? 1 : b->dim[b->rank - 1];
    int64_t kb = b->rank == 1 ? b->dim[0] : b->dim[b->rank - 2];
    if (p->k != kb || !types_fit(a, b))
        fail("%s: cannot contract %lld of %s with %lld of %s", kcall_where(p->call), (long long)p->k, dtype_name(a->dtype), (long long)kb,
             dtype_name(b->dtype));
    product_batch(p, a, b);
    bool shared = true; /* one right matrix for all: the batch of a becomes more rows */
    for (int d = 0; d < p->rank; d++)
        shared = shared && p->b_step[d] == 0;
    int64_t rows = tensor_dims_product(a->dim, 0, a->rank > 2 ? a->rank - 2 : 0);
    if (shared && rows == p->batch) {
        p->m *= p->batch;
        p->batch = 1;
        p->rank = 0;
    }
}

static void batch_offsets(const struct matmul_call *p, int64_t i, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int d = p->rank - 1; d >= 0; d--) {
        *a += i % p->dim[d] * p->a_step[d];
        *b += i % p->dim[d] * p->b_step[d];
        i /= p->dim[d];
    }
}

static void matmul_range(void *data, int64_t lo, int64_t hi)
{
    const struct matmul_call *p = data;
    for (int64_t i = lo; i < hi; i++) {
        int64_t a, b;
        batch_offsets(p, i, &a, &b);
        dnnl_product(p->call->env, false, false, p->m, p->n, p->k, 1.0f, p->a + a * p->m * p->k, p->k, p->b + b * p->k * p->n, p->n, 0.0f,
                     p->c + i * p->m * p->n, p->n);
    }
}

/* A batch large enough for all threads is divided among them; otherwise each product uses all threads. */
static void product_batches(struct matmul_call *p)
{
    if (p->batch >= kenv_threads(p->call->env))
        kenv_parallel_for(p->call->env, p->batch, p->m * p->n * p->k / 8 + 1, matmul_range, p);
    else
        matmul_range(p, 0, p->batch);
}

static void plain_batches(struct matmul_call *p, const struct tensor *a, const struct tensor *b, struct tensor *c)
{
    size_t size = dtype_size(c->dtype);
    for (int64_t i = 0; i < p->batch; i++) {
        int64_t at_a, at_b;
        batch_offsets(p, i, &at_a, &at_b);
        struct plain q = {c->dtype,
                          p->m,
                          p->n,
                          p->k,
                          {element_at_const(a->data, size, at_a * p->m * p->k), p->k, 1},
                          {element_at_const(b->data, size, at_b * p->k * p->n), p->n, 1},
                          element_at(c->data, size, i * p->m * p->n)};
        plain_product(p->call->env, q);
    }
}

/* ---- chunk by chunk ---------------------------------------------------------------------------------------------------------- */

/* Whether the right matrix is constant and shared by all rows. */
static bool packable(const struct kcall *call, int64_t batch)
{
    return call->in_constant && call->in_constant[1] && call->cache && batch == 1;
}

/* c = a b for a constant b, from a copy packed in the first call. False: it cannot be packed. */
static bool packed_product(struct kcall *call, int64_t m, int64_t n, int64_t k, const struct tensor *a, const struct tensor *b,
                           bool transposed, float *c)
{
    if (dnnl_packs(call->env, b->dtype))
        return dnnl_product_packed(call->env, call->cache, m, n, k, a, b, transposed, NULL, c);
    packed_gemm(call, tiled_weight(call, b, n, k, transposed), m, tensor_f32(call->env, a, ROOM_A), c);
    return true;
}

/* The right matrix of a product; of the first one in a batch. */
static struct right right_of(struct kcall *call, int64_t batch, int64_t n, int64_t k, const struct tensor *b, bool transposed)
{
    if (packable(call, batch) && k > 0)
        return right_weight(tiled_weight(call, b, n, k, transposed));
    return right_strided(tensor_f32(call->env, b, ROOM_B), k, transposed ? 1 : n, transposed ? k : 1);
}

static void chunk_batches(struct matmul_call *p, const struct tensor *a, const struct tensor *b, float *c)
{
    struct kcall *call = p->call;
    struct chunks chunks = chunks_of(call, p->k, 1);
    struct right right = right_of(call, p->batch, p->n, p->k, b, false);
    int64_t each = p->m * p->n, all = p->batch * each;
    float *partials = chunk_room(call, &chunks, DT_F32, all, c);
    const float *left = tensor_f32(call->env, a, ROOM_A), *first = right.at;
    for (int64_t i = 0; i < p->batch; i++) {
        int64_t at_a, at_b;
        batch_offsets(p, i, &at_a, &at_b);
        if (p->batch > 1)
            right.at = first + at_b * p->k * p->n;
        chunk_product(
            call, &(struct chunk_product){&chunks, p->m, p->n, left + at_a * p->m * p->k, p->k, &right, partials + i * each, p->n, all});
    }
    chunk_complete(call, &chunks, DT_F32, partials, all, c);
}

void kern_MatMul(struct kcall *call)
{
    const struct tensor *a = &call->in[0], *b = &call->in[1];
    struct tensor *c = &call->out[0];
    struct matmul_call p = {.call = call};
    product_shape(&p, a, b);
    if (p.batch * p.m * p.n == 0)
        return;
    if (!dtype_size(c->dtype) || c->dtype == DT_BOOL)
        kcall_bad_type(call, c->dtype);
    if (!dtype_fits_f32(c->dtype)) {
        plain_batches(&p, a, b, c);
        return;
    }
    p.c = kcall_result_f32(call, c);
    if (kenv_deterministic(call->env))
        chunk_batches(&p, a, b, p.c);
    else if (p.k == 0 || !packable(call, p.batch) || !packed_product(call, p.m, p.n, p.k, a, b, false, p.c)) {
        p.a = tensor_f32(call->env, a, ROOM_A);
        p.b = tensor_f32(call->env, b, ROOM_B);
        product_batches(&p);
    }
    kcall_result_store(p.c, c);
}

/* ---- Gemm -------------------------------------------------------------------------------------------------------------------- */
struct gemm_call {
    const struct walk *walk;
    float alpha, beta;
    float *y;
    const float *c;
};

static void affine_row(void *data, const int64_t *offset, int64_t n)
{
    const struct gemm_call *f = data;
    int64_t step = f->walk->stride[1][f->walk->rank - 1];
    float *y = f->y + offset[0];
    const float *c = f->c + offset[1];
    for (int64_t i = 0; i < n; i++)
        y[i] = f->alpha * y[i] + f->beta * c[i * step];
}

/* y = alpha y + beta c, c broadcast. */
static void gemm_add(struct kcall *call, float alpha, float beta, float *y, const struct tensor *c)
{
    struct tensor out = call->out[0];
    const struct tensor *in[1] = {c};
    struct walk w;
    struct gemm_call f = {&w, alpha, beta, y, tensor_f32(call->env, c, ROOM_A)};
    walk_broadcast(call, &w, &out, 1, in);
    walk_run(call->env, &w, 2, affine_row, &f);
}

static void gemm_scale(float *y, float alpha, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] *= alpha;
}

static void gemm_chunks(struct kcall *call, int64_t m, int64_t n, int64_t k, bool ta, bool tb, float *y)
{
    struct chunks chunks = chunks_of(call, k, 1);
    struct right right = right_of(call, 1, n, k, &call->in[1], tb);
    float *partials = chunk_room(call, &chunks, DT_F32, m * n, y);
    const float *a = tensor_f32(call->env, &call->in[0], ROOM_A);
    chunk_product(call,
                  &(struct chunk_product){&chunks, m, n, ta ? packed_gemm_transposed(call, a, k, m) : a, k, &right, partials, n, m * n});
    chunk_complete(call, &chunks, DT_F32, partials, m * n, y);
}

static void gemm_f32(struct kcall *call, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    const struct tensor *a = &call->in[0], *b = &call->in[1], *c = kcall_in(call, 2);
    struct tensor *y = &call->out[0];
    float alpha = (float)attr_float(call->node, "alpha"), beta = (float)attr_float(call->node, "beta"), *out = kcall_result_f32(call, y);
    if (kenv_deterministic(call->env)) {
        gemm_chunks(call, m, n, k, ta, tb, out);
    } else if (k == 0 || ta || !packable(call, 1) || !packed_product(call, m, n, k, a, b, tb, out)) {
        const float *fa = tensor_f32(call->env, a, ROOM_A), *fb = tensor_f32(call->env, b, ROOM_B);
        dnnl_product(call->env, ta, tb, m, n, k, 1.0f, fa, ta ? m : k, fb, tb ? k : n, 0.0f, out, n);
    }
    if (c)
        gemm_add(call, alpha, beta, out, c);
    else if (alpha < 1.0f || alpha > 1.0f)
        gemm_scale(out, alpha, m * n);
    kcall_result_store(out, y);
}

/* For f64 and integers: the product, then one pass in double or int64 for alpha, beta and C. */
static void gemm_plain(struct kcall *call, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    const struct tensor *a = &call->in[0], *b = &call->in[1], *c = kcall_in(call, 2);
    struct tensor *y = &call->out[0];
    double alpha = attr_float(call->node, "alpha"), beta = attr_float(call->node, "beta"), v, w;
    size_t size = dtype_size(y->dtype);
    struct plain p = {y->dtype, m, n, k, {a->data, ta ? 1 : k, ta ? m : 1}, {b->data, tb ? 1 : n, tb ? k : 1}, y->data};
    plain_product(call->env, p);
    int64_t row = c && c->rank == 2 && c->dim[0] != 1 ? c->dim[1] : 0, column = c && c->rank > 0 && c->dim[c->rank - 1] != 1;
    for (int64_t i = 0; i < m * n; i++) {
        convert_to_f64(y->dtype, element_at_const(y->data, size, i), 1, &v);
        w = 0;
        if (c)
            convert_to_f64(c->dtype, element_at_const(c->data, size, i / n * row + i % n * column), 1, &w);
        v = alpha * v + beta * w;
        convert_from_f64(y->dtype, &v, 1, element_at(y->data, size, i));
    }
}

static void gemm_check(const struct kcall *call, int64_t m, int64_t n, int64_t k, int64_t kb)
{
    const struct tensor *c = kcall_in(call, 2), *y = &call->out[0];
    if (k != kb || !types_fit(&call->in[0], &call->in[1]))
        fail("%s: cannot contract %lld with %lld", kcall_where(call), (long long)k, (long long)kb);
    require(y->rank == 2 && y->dim[0] == m && y->dim[1] == n);
    if (!c)
        return;
    bool fits = c->rank <= 2 && c->dtype == y->dtype;
    for (int d = 0; fits && d < c->rank; d++)
        fits = c->dim[d] == 1 || c->dim[d] == y->dim[d + 2 - c->rank];
    if (!fits)
        fail("%s: operand C does not broadcast to [%lld, %lld]", kcall_where(call), (long long)m, (long long)n);
}

void kern_Gemm(struct kcall *call)
{
    const struct tensor *a = &call->in[0], *b = &call->in[1];
    bool ta = attr_int(call->node, "transA") != 0, tb = attr_int(call->node, "transB") != 0;
    if (a->rank != 2 || b->rank != 2)
        fail("%s: operands must be matrices", kcall_where(call));
    int64_t m = a->dim[ta], k = a->dim[!ta], n = b->dim[!tb];
    gemm_check(call, m, n, k, b->dim[tb]);
    if (m * n == 0)
        return;
    if (!dtype_size(a->dtype) || a->dtype == DT_BOOL)
        kcall_bad_type(call, a->dtype);
    if (dtype_fits_f32(a->dtype))
        gemm_f32(call, m, n, k, ta, tb);
    else
        gemm_plain(call, m, n, k, ta, tb);
}

/* ---- packing at load --------------------------------------------------------------------------------------------------------- */
bool matmul_packs(const struct kcall *call, struct packed_key *key)
{
    bool gemm = call->node->op->kernel == kern_Gemm, transposed = gemm && attr_int(call->node, "transB");
    if (call->nin < 2 || !packable(call, 1) || (gemm && attr_int(call->node, "transA")))
        return false;
    const struct tensor *w = &call->in[1];
    key->weight = call->node->in[1]->constant;
    key->dtype = w->dtype;
    key->transposed = transposed;
    key->n = w->dim[!transposed];
    key->k = w->dim[transposed];
    return w->rank == 2 && key->n * key->k > 0 && dtype_fits_f32(w->dtype);
}

bool matmul_pack(struct kcall *call, const struct packed_key *key)
{
    const struct tensor *w = &call->in[1];
    if (dnnl_packs(call->env, w->dtype) && !kenv_deterministic(call->env))
        return dnnl_pack_weight(call->env, call->cache, key->n, key->k, w, key->transposed);
    tiled_weight(call, w, key->n, key->k, key->transposed);
    return true;
}
