/* Attention in single ops: projections apart or fused in one matrix (taken apart by thirds, or by a dimension of 3), heads by Reshape and
 * Transpose, rotary embedding, keys and values appended to a state, few key heads repeated for many query heads, masks of several makes. */
#include "op/op.h"
#include "tests/graphs/block.h"

#include <math.h>

struct layer {
    struct sketch *s;
    const struct dim *batch, *rows, *total; /* total: keys, including the state's */
    int64_t heads, kv_heads, size;
};

static struct dim const *integer(const struct layer *l, int64_t n)
{
    return dim_int(l->s->g->alg, n);
}

/* [batch, rows, heads * size] -> [batch, heads, rows, size] */
static struct value *spread(struct layer *l, struct value *x, int64_t heads)
{
    const struct dim *dim[4] = {l->batch, l->rows, integer(l, heads), integer(l, l->size)};
    return block_transpose(l->s, block_reshape(l->s, x, 4, dim), 4, (const int64_t[]){0, 2, 1, 3});
}

/* ---- projections ------------------------------------------------------------------------------------------------------------- */

static struct value *project(struct layer *l, struct value *x, int64_t heads)
{
    return spread(l, block_linear(l->s, x, integer(l, heads * l->size)), heads);
}

/* One matrix, Q, K and V end to end. */
static void project_fused(struct layer *l, struct value *x, struct value **qkv)
{
    int64_t q = l->heads * l->size, kv = l->kv_heads * l->size;
    struct value *all = block_linear(l->s, x, integer(l, q + 2 * kv));
    struct node *n = sketch_node(l->s, op_find("", "Split"), 1, &all, 3);
    if (!n)
        return;
    attr_set_int(n, "axis", 2);
    set_sizes(l->s, n, "split", 3, (const int64_t[]){q, kv, kv});
    if (!sketch_add(l->s, n, NULL))
        return;
    for (int i = 0; i < 3; i++)
        qkv[i] = spread(l, n->out[i], i ? l->kv_heads : l->heads);
}

/* One matrix seen as [.., 3, heads, size] or [.., heads, 3, size], taken apart by Gather. */
static void project_threes(struct layer *l, struct value *x, struct value **qkv)
{
    struct sketch *s = l->s;
    int three = 2 + (int)draw(s->draws, 2);
    const struct dim *dim[5] = {l->batch, l->rows, integer(l, three == 2 ? 3 : l->heads), integer(l, three == 2 ? l->heads : 3),
                                integer(l, l->size)};
    struct value *all = block_reshape(s, block_linear(s, x, integer(l, 3 * l->heads * l->size)), 5, dim);
    for (int i = 0; i < 3; i++) {
        struct node *n = sketch_node(s, op_find("", "Gather"), 2, (struct value *[]){all, sketch_scalar(s, DT_I64, i)}, 1);
        if (n)
            attr_set_int(n, "axis", three);
        qkv[i] = block_transpose(s, sketch_add(s, n, NULL), 4, (const int64_t[]){0, 2, 1, 3});
    }
}

static void project_all(struct layer *l, struct value *x, struct value **qkv)
{
    switch (draw(l->s->draws, 3)) {
    case 0:
        for (int i = 0; i < 3; i++)
            qkv[i] = project(l, x, i ? l->kv_heads : l->heads);
        break;
    case 1: project_fused(l, x, qkv); break;
    case 2:
        l->kv_heads = l->heads;
        project_threes(l, x, qkv);
        break;
    }
}

/* ---- rotary embedding -------------------------------------------------------------------------------------------------------- */

/* The halves exchanged, the first one negative. */
static struct value *half_turned(struct layer *l, struct value *x)
{
    struct value *in[2] = {sketch_op1(l->s, "Neg", block_columns(l->s, x, l->size / 2, INT64_MAX)), block_columns(l->s, x, 0, l->size / 2)};
    struct node *n = sketch_node(l->s, op_find("", "Concat"), 2, in, 1);
    if (n)
        attr_set_int(n, "axis", -1);
    return sketch_add(l->s, n, NULL);
}

/* Rows of a table of sizes up to 1, by position: [batch, 1, rows, size]. */
static struct value *angles(struct layer *l, struct value *positions)
{
    struct sketch *s = l->s;
    struct type t = {.dtype = DT_F32, .rank = 2, .dim = {integer(l, 9), integer(l, l->size)}};
    struct value *table = sketch_const(s, &t, s->exact ? (struct fill){INTEGERS, 0, 1} : (struct fill){FLOATS, -1, 1});
    struct value *rows = sketch_op2(s, "Gather", table, positions);
    struct node *n = sketch_node(s, op_find("", "Unsqueeze"), 1, &rows, 1);
    set_sizes(s, n, "axes", 1, (const int64_t[]){1});
    return sketch_add(s, n, NULL);
}

static struct value *rotated(struct layer *l, struct value *x, struct value *cosine, struct value *sine)
{
    struct value *a = sketch_op2(l->s, "Mul", x, cosine), *b = sketch_op2(l->s, "Mul", half_turned(l, x), sine);
    return sketch_op2(l->s, "Add", a, b);
}

static void rotate(struct layer *l, struct value **qkv)
{
    struct type t = {.dtype = DT_I64, .rank = 2, .dim = {l->batch, l->rows}};
    struct value *positions = sketch_input(l->s, &t, (struct fill){INTEGERS, 0, 8});
    struct value *cosine = angles(l, positions), *sine = angles(l, positions);
    for (int i = 0; i < 2; i++)
        qkv[i] = rotated(l, qkv[i], cosine, sine);
}

/* ---- state ------------------------------------------------------------------------------------------------------------------- */

/* Keys or values appended to the past: a state pair along a growing dimension. */
static struct value *appended(struct layer *l, struct value *x, const struct dim *past)
{
    struct type t = {.dtype = DT_F32, .rank = 4, .dim = {l->batch, integer(l, l->kv_heads), past, integer(l, l->size)}};
    struct value *in[2] = {sketch_input(l->s, &t, sketch_fill(l->s, DT_F32)), x};
    struct node *n = sketch_node(l->s, op_find("", "Concat"), 2, in, 1);
    if (n)
        attr_set_int(n, "axis", 2);
    struct value *y = sketch_add(l->s, n, NULL);
    if (y)
        graph_add_output(l->s->g, y);
    return y;
}

static void append(struct layer *l, struct value **qkv)
{
    struct sketch *s = l->s;
    if (!bindings_get(&s->bind, "P"))
        bindings_set(s->arena, &s->bind, "P", (int64_t)draw(s->draws, 5));
    const struct dim *past = dim_sym(s->g->alg, "P", 0);
    l->total = dim_add(s->g->alg, past, l->rows);
    for (int i = 1; i < 3; i++)
        qkv[i] = appended(l, qkv[i], past);
}

/* Each key head serves several query heads: Unsqueeze, Expand, Reshape, as exporters write it. */
static struct value *repeated(struct layer *l, struct value *x)
{
    int64_t groups = l->heads / l->kv_heads;
    struct node *n = sketch_node(l->s, op_find("", "Unsqueeze"), 1, &x, 1);
    set_sizes(l->s, n, "axes", 1, (const int64_t[]){2});
    struct value *y = sketch_add(l->s, n, NULL);
    const struct dim *wide[5] = {l->batch, integer(l, l->kv_heads), integer(l, groups), l->total, integer(l, l->size)};
    const struct dim *dim[4] = {l->batch, integer(l, l->heads), l->total, integer(l, l->size)};
    struct type t = sketch_type(DT_F32, 5, wide);
    return block_reshape(l->s, sketch_add(l->s, sketch_node(l->s, op_find("", "Expand"), 1, &y, 1), &t), 4, dim);
}

/* ---- masks ------------------------------------------------------------------------------------------------------------------- */

static struct value *positions_of(struct layer *l, const struct dim *n, int axis)
{
    struct node *range = sketch_node(l->s, op_find("", "Range"), 0, NULL, 1);
    const struct dim *zero = integer(l, 0), *one = integer(l, 1);
    attr_set_dims(l->s->g, range, "start", 1, &zero);
    attr_set_dims(l->s->g, range, "limit", 1, &n);
    attr_set_dims(l->s->g, range, "delta", 1, &one);
    struct value *x = sketch_add(l->s, range, &(struct type){.dtype = DT_I64});
    struct node *unsqueeze = sketch_node(l->s, op_find("", "Unsqueeze"), 1, &x, 1);
    set_sizes(l->s, unsqueeze, "axes", 1, (const int64_t[]){axis});
    return sketch_add(l->s, unsqueeze, NULL);
}

/* Rows against keys: key j is seen by row i where j <= i; key 0 always is. */
static struct value *causal(struct layer *l)
{
    struct value *keys = positions_of(l, l->total, 0), *rows = positions_of(l, l->rows, 1);
    return sketch_op2(l->s, "LessOrEqual", keys, rows);
}

/* The same by Trilu of ones: [rows, rows]. */
static struct value *triangle(struct layer *l)
{
    struct sketch *s = l->s;
    struct type t = {.dtype = DT_F32, .rank = 2, .dim = {l->rows, l->rows}};
    struct value *zeros = sketch_add(s, sketch_node(s, op_find("", "ConstantOfShape"), 0, NULL, 1), &t);
    struct value *ones = zeros ? sketch_op2(s, "Add", zeros, sketch_scalar(s, DT_F32, 1)) : NULL;
    struct node *n = sketch_node(s, op_find("", "Trilu"), 1, &ones, 1);
    if (!n)
        return NULL;
    attr_set_int(n, "upper", 0);
    struct value *lower = sketch_add(s, n, NULL);
    return lower ? sketch_op2(s, "Greater", lower, sketch_scalar(s, DT_F32, 0)) : NULL;
}

/* By counting an input's tokens: padding in front is not seen, and not everything is padding. [batch, 1, 1, rows] */
static struct value *counted(struct layer *l)
{
    struct sketch *s = l->s;
    struct type t = {.dtype = DT_I64, .rank = 2, .dim = {l->batch, l->rows}};
    struct value *ids = sketch_input(s, &t, (struct fill){INTEGERS, 1, 1});
    struct node *n = sketch_node(s, op_find("", "CumSum"), 1, &ids, 1);
    set_sizes(s, n, "axis", 1, (const int64_t[]){1});
    struct value *place = sketch_add(s, n, NULL);
    struct value *seen = place ? sketch_op2(s, "Greater", place, sketch_scalar(s, DT_I64, 0)) : NULL;
    n = sketch_node(s, op_find("", "Unsqueeze"), 1, &seen, 1);
    set_sizes(s, n, "axes", 2, (const int64_t[]){1, 2});
    return sketch_add(s, n, NULL);
}

/* What is not seen gets a large negative number, or minus infinity. */
static struct value *masked(struct layer *l, struct value *scores)
{
    static const double hidden[] = {-INFINITY, -1e4, -3.4028234663852886e38};
    struct sketch *s = l->s;
    bool same = l->total == l->rows;
    uint32_t kind = draw(s->draws, 4);
    if (kind == 0 || s->exact || !scores)
        return scores;
    struct value *seen = kind == 2 && same ? triangle(l) : kind == 3 && same ? counted(l) : causal(l);
    s->infinite = true;
    struct value *in[3] = {seen, scores, sketch_scalar(s, DT_F32, hidden[draw(s->draws, 3)])};
    struct value *y = sketch_op(s, "Where", 3, in);
    s->infinite = false;
    return y;
}

/* ---- the layer --------------------------------------------------------------------------------------------------------------- */

/* The fused op, or products around a Softmax. */
static struct value *attended(struct layer *l, struct value **qkv)
{
    struct sketch *s = l->s;
    if (!s->exact && draw(s->draws, 4) == 3)
        return sketch_op(s, "Attention", 3, qkv);
    if (l->heads != l->kv_heads)
        for (int i = 1; i < 3; i++)
            qkv[i] = repeated(l, qkv[i]);
    struct value *keys = block_transpose(s, qkv[1], 4, (const int64_t[]){0, 1, 3, 2});
    struct value *scores = sketch_op2(s, "MatMul", qkv[0], keys);
    if (scores && !s->exact && draw(s->draws, 2))
        scores = sketch_op2(s, "Mul", scores, sketch_scalar(s, DT_F32, 1 / sqrt((double)l->size)));
    scores = masked(l, scores);
    return sketch_op2(s, "MatMul", s->exact ? scores : sketch_op1(s, "Softmax", scores), qkv[2]);
}

static struct layer draw_layer(struct sketch *s, const struct value *x)
{
    static const int64_t heads[] = {2, 1, 4, 3, 6}, kv[] = {2, 1, 2, 3, 2}, sizes[] = {2, 4};
    uint32_t k = draw(s->draws, 5);
    struct layer l = {.s = s, .batch = x->type.dim[0], .rows = x->type.dim[1], .total = x->type.dim[1], .heads = heads[k]};
    l.kv_heads = draw(s->draws, 2) ? kv[k] : l.heads;
    l.size = sizes[draw(s->draws, 2)];
    return l;
}

struct value *block_attention(struct sketch *s, struct value *x)
{
    struct value *qkv[3] = {NULL, NULL, NULL};
    if (!x)
        return NULL;
    struct layer l = draw_layer(s, x);
    project_all(&l, block_norm(s, x), qkv);
    if (draw(s->draws, 3) == 2)
        rotate(&l, qkv);
    if (draw(s->draws, 3) == 2)
        append(&l, qkv);
    const struct dim *flat[3] = {l.batch, l.rows, integer(&l, l.heads * l.size)};
    struct value *y = block_reshape(s, block_transpose(s, attended(&l, qkv), 4, (const int64_t[]){0, 2, 1, 3}), 3, flat);
    y = block_linear(s, y, x->type.dim[2]);
    return draw(s->draws, 4) ? sketch_op2(s, "Add", y, x) : y;
}
