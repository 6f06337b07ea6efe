/* Operands of fused attention and rotary embedding: heads and head sizes are integers, batch and lengths come from the pool. */
#include "tests/graphs/families.h"

struct sizes {
    const struct dim *batch, *rows, *keys, *past;
    int64_t heads, groups, size;
}; /* heads: of keys; groups: query heads of each */

static struct sizes draw_sizes(struct sketch *s)
{
    static const int64_t heads[] = {2, 1, 4, 3, 6}, size[] = {2, 4, 6};
    struct sizes z = {.batch = sketch_dim(s), .rows = sketch_dim(s)};
    z.heads = heads[draw(s->draws, 5)];
    z.groups = 1 + (int64_t)draw(s->draws, 3);
    z.size = size[draw(s->draws, 3)];
    return z;
}

/* A state's length: a symbol that may be 0. */
static const struct dim *past_length(struct sketch *s)
{
    if (!bindings_get(&s->bind, "P"))
        bindings_set(s->arena, &s->bind, "P", (int64_t)draw(s->draws, 5));
    return dim_sym(s->g->alg, "P", 0);
}

static struct value *like(struct sketch *s, int rank, const struct dim *a, const struct dim *b, const struct dim *c, const struct dim *d)
{
    return sketch_like(s, DT_F32, rank, (const struct dim *[]){a, b, c, d});
}

/* [batch, length, heads * size], or [batch, heads, length, size]. */
static struct value *heads_of(struct sketch *s, const struct sizes *z, int64_t heads, const struct dim *length, bool flat)
{
    struct alg *alg = s->g->alg;
    if (flat)
        return like(s, 3, z->batch, length, dim_int(alg, heads * z->size), NULL);
    return like(s, 4, z->batch, dim_int(alg, heads), length, dim_int(alg, z->size));
}

/* A state is an input that nothing else reads. */
static struct value *past(struct sketch *s, const struct sizes *z)
{
    struct type t = {.dtype = DT_F32, .rank = 4, .dim = {z->batch, dim_int(s->g->alg, z->heads), z->past, dim_int(s->g->alg, z->size)}};
    return sketch_input(s, &t, sketch_fill(s, DT_F32));
}

/* Key 0 is never masked, so that no row is empty. */
static struct value *mask(struct sketch *s, const struct sizes *z, const struct dim *total)
{
    const struct dim *one = dim_int(s->g->alg, 1), *dim[4] = {one, one, z->rows, total};
    if (draw(s->draws, 2))
        dim[0] = z->batch;
    if (draw(s->draws, 3) == 1)
        dim[1] = dim_int(s->g->alg, z->heads * z->groups);
    int drop = dim[0] == one && dim[1] == one ? 2 * (int)draw(s->draws, 2) : 0;
    return sketch_like(s, DT_F32, 4 - drop, dim + drop);
}

void make_attention(struct sketch *s, const struct op *op)
{
    struct sizes z = draw_sizes(s);
    bool flat = draw(s->draws, 2), state = draw(s->draws, 3) == 1;
    z.keys = draw(s->draws, 3) == 1 ? sketch_dim(s) : z.rows;
    z.past = state ? past_length(s) : NULL;
    const struct dim *total = state ? dim_add(s->g->alg, z.past, z.keys) : z.keys;
    struct value *in[6] = {heads_of(s, &z, z.heads * z.groups, z.rows, flat)};
    in[1] = heads_of(s, &z, z.heads, z.keys, flat);
    in[2] = heads_of(s, &z, z.heads, z.keys, flat);
    in[3] = draw(s->draws, 3) == 1 ? mask(s, &z, total) : NULL;
    in[4] = state ? past(s, &z) : NULL;
    in[5] = state ? past(s, &z) : NULL;
    struct node *n = sketch_node(s, op, state ? 6 : in[3] ? 4 : 3, in, state ? 3 : 1);
    if (!n)
        return;
    if (flat) {
        attr_set_int(n, "q_num_heads", z.heads * z.groups);
        attr_set_int(n, "kv_num_heads", z.heads);
    }
    attr_set_int(n, "is_causal", z.keys == z.rows && draw(s->draws, 2));
    sketch_add(s, n, NULL);
}

/* i32 numbers that all say the same. */
static struct value *says(struct sketch *s, int rank, const struct dim *dim, int64_t k)
{
    struct type t = sketch_type(DT_I32, rank, &dim);
    return sketch_input(s, &t, (struct fill){INTEGERS, (double)k, (double)k});
}

void make_gqa(struct sketch *s, const struct op *op)
{
    struct alg *alg = s->g->alg;
    struct sizes z = draw_sizes(s);
    bool packed = draw(s->draws, 2), rotary = draw(s->draws, 2);
    z.past = past_length(s);
    int64_t heads = z.heads * z.groups, total = sketch_size(s, z.past) + sketch_size(s, z.rows);
    struct value *in[9] = {heads_of(s, &z, packed ? heads + 2 * z.heads : heads, z.rows, true)};
    in[1] = packed ? NULL : heads_of(s, &z, z.heads, z.rows, true);
    in[2] = packed ? NULL : heads_of(s, &z, z.heads, z.rows, true);
    in[3] = past(s, &z);
    in[4] = past(s, &z);
    in[5] = says(s, 1, z.batch, total - 1);
    in[6] = says(s, 0, NULL, total);
    in[7] = rotary ? like(s, 2, dim_int(alg, 32), dim_int(alg, z.size / 2), NULL, NULL) : NULL;
    in[8] = rotary ? like(s, 2, dim_int(alg, 32), dim_int(alg, z.size / 2), NULL, NULL) : NULL;
    struct node *n = sketch_node(s, op, rotary ? 9 : 7, in, 3);
    if (!n)
        return;
    attr_set_int(n, "num_heads", heads);
    attr_set_int(n, "kv_num_heads", z.heads);
    attr_set_int(n, "do_rotary", rotary);
    if (draw(s->draws, 3) == 1)
        attr_set_int(n, "local_window_size", 1 + draw(s->draws, 4));
    sketch_add(s, n, NULL);
}

/* Angles ready per token, or tables that positions look up in. */
void make_rotary(struct sketch *s, const struct op *op)
{
    struct alg *alg = s->g->alg;
    struct sizes z = draw_sizes(s);
    bool flat = draw(s->draws, 2), table = draw(s->draws, 2);
    const struct dim *half = dim_int(alg, z.size / 2);
    struct type t = {.dtype = DT_I64, .rank = 2, .dim = {z.batch, z.rows}};
    struct value *in[4] = {heads_of(s, &z, z.heads, z.rows, flat)};
    for (int i = 1; i < 3; i++)
        in[i] = table ? like(s, 2, dim_int(alg, 9), half, NULL, NULL) : like(s, 3, z.batch, z.rows, half, NULL);
    in[3] = table ? sketch_input(s, &t, (struct fill){INTEGERS, 0, 8}) : NULL;
    struct node *n = sketch_node(s, op, table ? 4 : 3, in, 1);
    if (!n)
        return;
    if (flat)
        attr_set_int(n, "num_heads", z.heads);
    attr_set_int(n, "interleaved", draw(s->draws, 2));
    sketch_add(s, n, NULL);
}
