/* quantize_weights: converts weights to integers of 8 or 4 bits in blocks of 32 that share a scale (--weights int8, int4). MatMul and Gemm
 * by an f32 weight become MatMulNBits, Gather of its rows GatherBlockQuantized, which ONNX Runtime runs, too.
 *
 * A number is rounded to the nearest of 2^bits multiples of the scale. The number of largest magnitude in a block gets the least code, so
 * it is exact. Bytes are converted when a file is written; a split of the weight between blocks does not change them. */
#include "op/op.h"
#include "plan/apply/apply.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32, COLUMNS = 16, LEVEL = 4 }; /* LEVEL: activations may be rounded to 8 bits */

/* A matrix stored by columns: column j has k numbers. */
struct quantized {
    const char *model, *name;
    int64_t n, k;
    int bits;
    bool by_rows; /* stored as [n, k]; else [k, n] */
};

/* ---- numbers ------------------------------------------------------------------------------------------------------------------------- */

static int64_t blocks_of(const struct quantized *q)
{
    return (q->k + BLOCK - 1) / BLOCK;
}

/* Reads block b of `count` columns from column j on, padded with zeros. `from` may be unaligned. */
static void read_blocks(const struct quantized *q, const char *from, int64_t j, int64_t count, int64_t b, float (*x)[BLOCK])
{
    int64_t n = q->k - b * BLOCK < BLOCK ? q->k - b * BLOCK : BLOCK;
    memset(x, 0, (size_t)count * sizeof *x);
    for (int64_t c = 0; q->by_rows && c < count; c++)
        memcpy(x[c], from + ((j + c) * q->k + b * BLOCK) * (int64_t)sizeof(float), (size_t)n * sizeof(float));
    for (int64_t i = 0; !q->by_rows && i < n; i++) {
        float row[COLUMNS];
        memcpy(row, from + ((b * BLOCK + i) * q->n + j) * (int64_t)sizeof(float), (size_t)count * sizeof(float));
        for (int64_t c = 0; c < count; c++)
            x[c][i] = row[c];
    }
}

/* The scale of a block: the difference between two codes. */
static float block_scale(const struct quantized *q, const float *x)
{
    float most = 0;
    for (int i = 0; i < BLOCK; i++) {
        if (!isfinite(x[i]))
            fail("%s: --weights %s: '%s' has a number that is not finite", q->model, weight_type_name(q->bits == 4 ? DT_I4 : DT_I8),
                 q->name);
        most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    }
    return fabsf(most) > 1e-30f ? most / (float)-(1 << (q->bits - 1)) : 0.0f;
}

static void block_codes(const struct quantized *q, const float *x, uint8_t *to)
{
    float scale = block_scale(q, x), over = scale < 0 || scale > 0 ? 1 / scale : 0;
    int zero = 1 << (q->bits - 1), most = 2 * zero - 1;
    memset(to, 0, (size_t)BLOCK * (size_t)q->bits / 8);
    for (int i = 0; i < BLOCK; i++) {
        int code = zero + (int)lrintf(x[i] * over);
        code = code > most ? most : code;
        to[i * q->bits / 8] |= (uint8_t)(code << i * q->bits % 8);
    }
}

static void make_codes(const struct made *m, const void *from, void *to)
{
    const struct quantized *q = m->how;
    int64_t blocks = blocks_of(q), bytes = BLOCK * q->bits / 8;
    float x[COLUMNS][BLOCK];
    for (int64_t j = 0; j < q->n; j += COLUMNS) {
        int64_t count = q->n - j < COLUMNS ? q->n - j : COLUMNS;
        for (int64_t b = 0; b < blocks; b++) {
            read_blocks(q, from, j, count, b, x);
            for (int64_t c = 0; c < count; c++)
                block_codes(q, x[c], (uint8_t *)to + ((j + c) * blocks + b) * bytes);
        }
    }
}

static void make_scales(const struct made *m, const void *from, void *to)
{
    const struct quantized *q = m->how;
    float x[COLUMNS][BLOCK], *scale = to;
    for (int64_t j = 0; j < q->n; j += COLUMNS) {
        int64_t count = q->n - j < COLUMNS ? q->n - j : COLUMNS;
        for (int64_t b = 0; b < blocks_of(q); b++) {
            read_blocks(q, from, j, count, b, x);
            for (int64_t c = 0; c < count; c++)
                scale[(j + c) * blocks_of(q) + b] = block_scale(q, x[c]);
        }
    }
}

/* ---- constants ----------------------------------------------------------------------------------------------------------------------- */

static struct value *made_constant(struct graph *g, struct value *w, const struct quantized *q, const char *what, enum dtype dtype,
                                   int rank, const int64_t *dim, void (*make)(const struct made *, const void *, void *))
{
    const char *name = arena_printf(g->arena, "%s/%s", w->name, what);
    struct value *v = graph_find(g, name);
    if (v && v->constant && v->constant->made)
        return v;
    struct made *m = NEW(g->arena, struct made);
    *m = (struct made){.from = w->constant, .name = w->name, .make = make, .how = q, .arena = g->arena};
    struct constant *c = NEW(g->arena, struct constant);
    *c = (struct constant){.dtype = dtype, .rank = rank, .made = m};
    struct type type = {.dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++) {
        c->dim[d] = dim[d];
        type.dim[d] = dim_int(g->alg, dim[d]);
    }
    if (!type_sizes_product(dim, rank, &c->bytes) || !i64_mul(c->bytes, (int64_t)dtype_size(dtype), &c->bytes))
        fail("%s: '%s' is too large", g->path, w->name);
    v = graph_value(g, name, &type);
    v->constant = c;
    return v;
}

/* Makes the constants of the codes, in bytes with rows of dim[1..] bytes, and of the scales. */
static void quantize(struct graph *g, struct value *w, const struct quantized *from, bool table, struct value **codes,
                     struct value **scales)
{
    struct quantized *q = NEW(g->arena, struct quantized);
    require((from->bits == 4 || from->bits == 8) && (!table || from->k % BLOCK == 0)); /* a block is in one row */
    *q = *from;
    q->model = g->path;
    q->name = w->name;
    int64_t blocks = blocks_of(q), bytes = BLOCK * q->bits / 8;
    const char *type = arena_printf(g->arena, "%s%s",
                                    table            ? "rows."
                                        : q->by_rows ? "transposed."
                                                     : "",
                                    weight_type_name(q->bits == 4 ? DT_I4 : DT_I8));
    *codes = made_constant(g, w, q, type, DT_U8, table ? 2 : 3,
                           table ? (int64_t[]){q->n, blocks * bytes} : (int64_t[]){q->n, blocks, bytes}, make_codes);
    *scales = made_constant(g, w, q, arena_printf(g->arena, "%s.scales", type), DT_F32, 2, (int64_t[]){q->n, blocks}, make_scales);
}

/* ---- nodes --------------------------------------------------------------------------------------------------------------------------- */

static bool is_weight(const struct uses *uses, const struct value *v)
{
    return v && v->constant && v->constant->dtype == DT_F32 && v->constant->rank == 2 && weight_may_be_cast(uses, v);
}

/* The constant whose transpose v is. */
static struct value *transposed_weight(const struct uses *uses, const struct graph *g, const struct value *v)
{
    const struct node *n = v->producer;
    const int64_t *perm;
    bool transposes = n && op_is_onnx(n, "Transpose") && is_weight(uses, n->in[0]);
    return transposes && attr_ints(g, n, "perm", &perm) == 2 && perm[0] == 1 ? n->in[0] : NULL;
}

static bool is_one(const struct node *n, const char *attr)
{
    double x = attr_float(n, attr);
    return x >= 1 && x <= 1;
}

/* Whether a Gemm is a product plus a bias of one row. */
static bool plain_gemm(const struct node *n)
{
    const struct value *c = node_operand(n, 2);
    return op_is_onnx(n, "Gemm") && !attr_int(n, "transA") && is_one(n, "alpha") &&
        (!c || (is_one(n, "beta") && c->type.rank == 1 && c->type.dim[0] == n->out[0]->type.dim[1]));
}

static struct node *quantized_product(struct graph *g, const struct uses *uses, const struct node *n, int bits)
{
    bool gemm = plain_gemm(n);
    if (!gemm && !op_is_onnx(n, "MatMul"))
        return NULL;
    struct value *w = is_weight(uses, n->in[1]) ? n->in[1] : transposed_weight(uses, g, n->in[1]), *in[6] = {n->in[0]};
    if (!w || n->in[0]->type.rank == 0)
        return NULL;
    bool rows = (w != n->in[1]) != (gemm && attr_int(n, "transB"));
    struct quantized q = {.n = w->constant->dim[!rows], .k = w->constant->dim[rows], .bits = bits, .by_rows = rows};
    if (q.k < BLOCK)
        return NULL;
    quantize(g, w, &q, false, &in[1], &in[2]);
    in[5] = gemm ? node_operand(n, 2) : NULL;
    struct node *made = graph_node(g, op_find("com.microsoft", "MatMulNBits"), n->name, in[5] ? 6 : 3, in, 1);
    attr_set_int(made, "K", q.k);
    attr_set_int(made, "N", q.n);
    attr_set_int(made, "bits", bits);
    attr_set_int(made, "block_size", BLOCK);
    attr_set_int(made, "accuracy_level", LEVEL);
    return made;
}

static struct node *quantized_lookup(struct graph *g, const struct uses *uses, const struct node *n, int bits)
{
    if (!op_is_onnx(n, "Gather") || attr_int(n, "axis") != 0 || !is_weight(uses, n->in[0]) || n->in[0]->constant->dim[1] % BLOCK)
        return NULL;
    struct value *w = n->in[0], *in[3] = {NULL, n->in[1], NULL};
    struct quantized q = {.n = w->constant->dim[0], .k = w->constant->dim[1], .bits = bits, .by_rows = true};
    quantize(g, w, &q, true, &in[0], &in[2]);
    struct node *made = graph_node(g, op_find("com.microsoft", "GatherBlockQuantized"), n->name, 3, in, 1);
    attr_set_int(made, "bits", bits);
    attr_set_int(made, "block_size", BLOCK);
    return made;
}

int plan_quantize_weights(struct graph *g, int bits)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    int found = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *made = quantized_product(g, uses, n, bits);
        made = made ? made : quantized_lookup(g, uses, n, bits);
        if (!made)
            continue;
        node_output(g, made, 0, n->out[0]);
        g->nodes.at[i] = made;
        found++;
    }
    arena_free(tmp);
    graph_prune(g);
    return found;
}
