/* Blocks of models but for attention: linear layers, feed-forward parts, norms in single ops, embeddings tied to the head, residuals. */
#include "tests/graphs/block.h"

#include "op/op.h"

#include <string.h>

struct value *block_hidden(struct sketch *s)
{
    static const int64_t widths[] = {4, 8, 6, 12, 2, 24, 10};
    struct type t = {.dtype = DT_F32, .rank = 3, .dim = {sketch_dim(s), sketch_dim(s)}};
    if (draw(s->draws, 3) != 0)
        for (int i = s->items.n - 1; i >= 0; i--) {
            struct value *v = s->g->values.at[i];
            int64_t n;
            if (sketch_item(s, v)->there && !v->constant && v->type.dtype == DT_F32 && v->type.rank == 3 &&
                dim_is_int(v->type.dim[2], &n) && n > 0 && n % 2 == 0)
                return v;
        }
    t.dim[2] = dim_int(s->g->alg, widths[draw(s->draws, 7)]);
    return sketch_input(s, &t, sketch_fill(s, DT_F32));
}

struct value *block_linear(struct sketch *s, struct value *x, const struct dim *columns)
{
    if (!x)
        return NULL;
    const struct dim *k = x->type.dim[x->type.rank - 1];
    struct value *y = sketch_op2(s, "MatMul", x, make_weight(s, k, columns, k));
    return y && draw(s->draws, 2) ? sketch_op2(s, "Add", y, sketch_like(s, DT_F32, 1, &columns)) : y;
}

struct value *block_columns(struct sketch *s, struct value *x, int64_t from, int64_t to)
{
    struct node *n = sketch_node(s, op_find("", "Slice"), 1, &x, 1);
    if (!n)
        return NULL;
    set_sizes(s, n, "starts", 1, &from);
    set_sizes(s, n, "ends", 1, &to);
    set_sizes(s, n, "axes", 1, (const int64_t[]){x->type.rank - 1});
    set_sizes(s, n, "steps", 1, (const int64_t[]){1});
    return sketch_add(s, n, NULL);
}

struct value *block_reshape(struct sketch *s, struct value *x, int rank, const struct dim *const *dim)
{
    struct type t = sketch_type(x ? x->type.dtype : DT_NONE, rank, dim);
    return sketch_add(s, sketch_node(s, op_find("", "Reshape"), 1, &x, 1), &t);
}

struct value *block_transpose(struct sketch *s, struct value *x, int rank, const int64_t *perm)
{
    struct node *n = sketch_node(s, op_find("", "Transpose"), 1, &x, 1);
    if (n)
        attr_set_ints(s->g, n, "perm", rank, perm);
    return sketch_add(s, n, NULL);
}

/* ---- norms ------------------------------------------------------------------------------------------------------------------- */

static struct value *mean(struct sketch *s, struct value *x)
{
    struct node *n = sketch_node(s, op_find("", "ReduceMean"), 1, &x, 1);
    if (n)
        set_sizes(s, n, "axes", 1, (const int64_t[]){-1});
    return sketch_add(s, n, NULL);
}

/* In single ops, as exporters before opset 17 write LayerNormalization, or RMSNormalization without the mean. */
static struct value *written_out(struct sketch *s, struct value *x)
{
    struct value *centered = draw(s->draws, 2) ? sketch_op2(s, "Sub", x, mean(s, x)) : x;
    struct value *variance = mean(s, sketch_op2(s, "Mul", centered, centered));
    struct value *root = sketch_op1(s, "Sqrt", variance ? sketch_op2(s, "Add", variance, sketch_scalar(s, DT_F32, 0.125)) : NULL);
    return sketch_op2(s, "Div", centered, root);
}

struct value *block_norm(struct sketch *s, struct value *x)
{
    if (s->exact || !x)
        return x;
    const struct dim *const *last = &x->type.dim[x->type.rank - 1];
    if (draw(s->draws, 2))
        return sketch_op2(s, "Mul", written_out(s, x), sketch_like(s, DT_F32, 1, last));
    struct value *in[2] = {x, sketch_like(s, DT_F32, 1, last)};
    struct node *n = sketch_node(s, op_find("", draw(s->draws, 2) ? "RMSNormalization" : "LayerNormalization"), 2, in, 1);
    if (n)
        set_float(n, "epsilon", 0.125);
    return sketch_add(s, n, NULL);
}

/* ---- feed-forward ------------------------------------------------------------------------------------------------------------ */

static struct value *activation(struct sketch *s, struct value *x)
{
    static const char *const ops[] = {"Relu", "Gelu", "Tanh"};
    return sketch_op1(s, ops[s->exact ? 0 : draw(s->draws, 3)], x);
}

/* gate|up in one matrix, taken apart by Split or by Slices. */
static struct value *gated(struct sketch *s, struct value *x, int64_t width)
{
    struct value *both = block_linear(s, x, dim_int(s->g->alg, 2 * width));
    if (draw(s->draws, 2)) {
        struct value *up = block_columns(s, both, width, 2 * width);
        return sketch_op2(s, "Mul", activation(s, block_columns(s, both, 0, width)), up);
    }
    struct node *n = sketch_node(s, op_find("", "Split"), 1, &both, 2);
    if (!n)
        return NULL;
    attr_set_int(n, "axis", 2);
    set_sizes(s, n, "split", 2, (const int64_t[]){width, width});
    return sketch_add(s, n, NULL) ? sketch_op2(s, "Mul", activation(s, n->out[0]), n->out[1]) : NULL;
}

static struct value *feed_forward(struct sketch *s, struct value *x)
{
    static const int64_t widths[] = {4, 6, 8, 3, 12, 5};
    int64_t width = widths[draw(s->draws, 6)];
    struct value *h = block_norm(s, x);
    h = draw(s->draws, 2) ? gated(s, h, width) : activation(s, block_linear(s, h, dim_int(s->g->alg, width)));
    struct value *y = x ? block_linear(s, h, x->type.dim[2]) : NULL;
    return draw(s->draws, 4) ? sketch_op2(s, "Add", y, x) : y;
}

/* ---- embeddings -------------------------------------------------------------------------------------------------------------- */

/* Tokens are looked up in a table, pass a layer or two, and are multiplied with the same table turned around. */
static void tied_embedding(struct sketch *s)
{
    const struct dim *vocabulary = sketch_static(s), *width = dim_int(s->g->alg, 4 + 4 * (int64_t)draw(s->draws, 2));
    struct type ids = {.dtype = DT_I64, .rank = 2, .dim = {sketch_dim(s), sketch_dim(s)}};
    struct value *table = sketch_const(s, &(struct type){.dtype = DT_F32, .rank = 2, .dim = {vocabulary, width}}, sketch_fill(s, DT_F32));
    struct value *tokens = sketch_input(s, &ids, (struct fill){INTEGERS, 0, (double)sketch_size(s, vocabulary) - 1});
    struct value *x = sketch_op2(s, "Gather", table, tokens);
    if (draw(s->draws, 2))
        x = feed_forward(s, x);
    if (draw(s->draws, 2))
        x = block_attention(s, x);
    x = block_norm(s, x);
    struct value *head = sketch_op1(s, "Transpose", table);
    struct value *logits = sketch_op2(s, "MatMul", x, head);
    if (logits && !s->exact && draw(s->draws, 2))
        sketch_op1(s, "Softmax", logits);
}

/* Two branches of one input, as a parallel block has them, are summed. */
static void parallel(struct sketch *s)
{
    struct value *x = block_hidden(s), *a = feed_forward(s, x), *b = block_attention(s, x);
    sketch_op2(s, "Add", a, b);
}

void make_block(struct sketch *s)
{
    switch (draw(s->draws, 6)) {
    case 0: feed_forward(s, block_hidden(s)); break;
    case 1: block_norm(s, block_hidden(s)); break;
    case 2:
    case 3: block_attention(s, block_hidden(s)); break;
    case 4: tied_embedding(s); break;
    case 5: parallel(s); break;
    }
}
