/* recurrent: types of RNN, GRU, LSTM and DynamicQuantizeLSTM.
 *
 * Letters are t steps, b rows of the batch, i inputs, h hidden units, d directions, g gates:
 *   X [t, b, i]  W [d, g h, i]  R [d, g h, h]  B [d, 2 g h]  sequence_lens [b]  initial_h, initial_c [d, b, h]  P [d, 3 h]
 *   Y [t, d, b, h]  Y_h, Y_c [d, b, h]
 * With layout 1 the batch comes first. The quantised form has W [d, i, g h], R [d, h, g h] and scales [d] or [d, g h]. A rank that holds
 * some of the hidden units has only these in W, R by gates, B, P, initial_c and Y_c, and everything else in full. */
#include "op/recurrent/recurrent.h"

#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

#include <string.h>

struct recurrent_form recurrent_form(const struct node *node)
{
    bool quantized = strcmp(node->optype, "DynamicQuantizeLSTM") == 0, lstm = quantized || strcmp(node->optype, "LSTM") == 0;
    bool own = strcmp(node->domain, "tpc") == 0, resets_first = strcmp(node->optype, "GRU") == 0 && !attr_int(node, "linear_before_reset");
    int backwards = node->op->nin - 1;
    return (struct recurrent_form){.units = own && attr_is_set(node, "units") ? attr_string(node, "units") : NULL,
                                   .exchanges = resets_first ? 2 : 1,
                                   .gates = lstm                          ? 4
                                       : strcmp(node->optype, "GRU") == 0 ? 3
                                                                          : 1,
                                   .quantized = quantized,
                                   .lstm = lstm,
                                   .batch_first = attr_int(node, "layout") != 0,
                                   .backwards = own && node_operand(node, backwards) ? backwards : -1};
}

int recurrent_directions(const struct graph *g, const struct node *node)
{
    const char *direction = attr_string(node, "direction");
    bool both = strcmp(direction, "bidirectional") == 0;
    if (!both && strcmp(direction, "forward") && strcmp(direction, "reverse"))
        fail("%s: attribute 'direction' is '%s', expected forward, reverse or bidirectional", node_where(g, node), direction);
    return both ? 2 : 1;
}

struct sizes {
    const struct dim *t, *b, *i, *h, *d;
    const struct dim *own, *gh; /* the rank's hidden units, and its gates' columns */
};

static void same(struct graph *g, struct node *node, int i, int d, const struct dim *expected)
{
    op_same_dim(g, node, op_operand(g, node, i)->dim[d], expected, "the sizes of its operands");
}

/* This rank's hidden units. */
static const struct dim *own_units(struct graph *g, const struct node *node, const struct recurrent_form *f, const struct dim *all)
{
    const char *error = NULL;
    const struct split *s = f->units ? split_parse(g->alg, f->units, &error) : NULL;
    if (f->units && !s)
        fail("%s: attribute 'units' is no split: '%s': %s", node_where(g, node), f->units, error ? error : "malformed");
    if (!s || g->rank < 0)
        return all;
    if (s->ranks != g->ranks)
        fail("%s: attribute 'units' is for %d ranks, the graph is for %d", node_where(g, node), s->ranks, g->ranks);
    op_same_dim(g, node, split_size(g->alg, s), all, "the split and the hidden units");
    return split_extent(g->alg, s, g->rank);
}

bool recurrent_exchanges(const struct graph *g, const struct node *node, struct recurrent_exchange *x)
{
    const char *error;
    if (!op_communicates(node) || !(node->op->flags & OP_RECURS))
        return false;
    struct recurrent_form f = recurrent_form(node);
    const struct dim *const *in = node->in[RECUR_X]->type.dim;
    const struct dim *each = dim_mul(g->alg, node->in[RECUR_W]->type.dim[0], dim_int(g->alg, f.exchanges));
    x->units = split_parse(g->alg, f.units, &error);
    x->times = dim_mul(g->alg, in[f.batch_first], each);
    x->rows = in[!f.batch_first];
    require(x->units);
    return true;
}

static void check_rank(struct graph *g, struct node *node, int i, int rank)
{
    op_need_rank(g, node, i, rank, rank);
}

static struct sizes sizes_of(struct graph *g, struct node *node, const struct recurrent_form *f)
{
    struct alg *alg = g->alg;
    for (int i = RECUR_X; i <= RECUR_R; i++)
        check_rank(g, node, i, 3);
    const struct type *x = op_operand(g, node, RECUR_X), *w = op_operand(g, node, RECUR_W), *r = op_operand(g, node, RECUR_R);
    struct sizes s = {.t = x->dim[f->batch_first], .b = x->dim[!f->batch_first], .i = x->dim[2]};
    s.h = f->quantized ? r->dim[1] : r->dim[2];
    s.own = own_units(g, node, f, s.h);
    s.gh = dim_mul(alg, dim_int(alg, f->gates), s.own);
    s.d = w->dim[0];
    same(g, node, RECUR_W, f->quantized ? 2 : 1, s.gh);
    same(g, node, RECUR_W, f->quantized ? 1 : 2, s.i);
    same(g, node, RECUR_R, 0, s.d);
    same(g, node, RECUR_R, f->quantized ? 2 : 1, s.gh);
    return s;
}

static void check_directions(struct graph *g, struct node *node, const struct recurrent_form *f, const struct sizes *s)
{
    int64_t d, directions = recurrent_directions(g, node);
    if (!dim_is_int(s->d, &d) || (f->backwards < 0 ? d != directions : d > 2))
        fail("%s: its weights have %s directions, expected %lld", node_where(g, node), dim_str(g->arena, s->d), (long long)directions);
    if (f->backwards >= 0) {
        check_rank(g, node, f->backwards, 1);
        same(g, node, f->backwards, 0, s->d);
    }
}

/* [d, b, h], or [b, d, h]. */
static void check_state(struct graph *g, struct node *node, int i, const struct recurrent_form *f, const struct sizes *s)
{
    const struct dim *units = i == RECUR_C ? s->own : s->h;
    check_rank(g, node, i, 3);
    same(g, node, i, f->batch_first, s->d);
    same(g, node, i, !f->batch_first, s->b);
    same(g, node, i, 2, units);
    op_same_dtype(g, node, RECUR_X, i);
}

static void check_flat(struct graph *g, struct node *node, int i, const struct sizes *s, const struct dim *size)
{
    check_rank(g, node, i, 2);
    same(g, node, i, 0, s->d);
    same(g, node, i, 1, size);
    op_same_dtype(g, node, RECUR_X, i);
}

static void check_optional(struct graph *g, struct node *node, const struct recurrent_form *f, const struct sizes *s)
{
    if (node_operand(node, RECUR_B))
        check_flat(g, node, RECUR_B, s, dim_mul(g->alg, dim_int(g->alg, 2), s->gh));
    if (node_operand(node, RECUR_LENS)) {
        check_rank(g, node, RECUR_LENS, 1);
        same(g, node, RECUR_LENS, 0, s->b);
        op_index_type(g, node, RECUR_LENS);
    }
    for (int i = RECUR_H; i <= (f->lstm ? RECUR_C : RECUR_H); i++)
        if (node_operand(node, i))
            check_state(g, node, i, f, s);
    if (f->lstm && node_operand(node, RECUR_P))
        check_flat(g, node, RECUR_P, s, dim_mul(g->alg, dim_int(g->alg, 3), s->own));
}

/* Scales and zero points of W and R: one per direction, or one per column of it. */
static void check_scales(struct graph *g, struct node *node, const struct sizes *s)
{
    for (int i = RECUR_SCALES; i < RECUR_SCALES + 4; i++) {
        op_need_rank(g, node, i, 1, 2);
        same(g, node, i, 0, s->d);
        if (op_operand(g, node, i)->rank == 2 && !dim_equals(op_operand(g, node, i)->dim[1], 1))
            same(g, node, i, 1, s->gh);
    }
    for (int i = RECUR_W; i <= RECUR_R; i++) {
        enum dtype t = op_operand(g, node, i)->dtype;
        if (!dtype_is_byte(t))
            fail("%s: weight '%s' is %s, expected i8 or u8", node_where(g, node), node->in[i]->name, dtype_name(t));
        op_same_dtype(g, node, i, RECUR_SCALES + 2 * (i - RECUR_W) + 1);
    }
}

static void check_attributes(struct graph *g, const struct node *node, const struct sizes *s)
{
    int64_t h;
    if (attr_is_set(node, "hidden_size") && dim_is_int(s->h, &h) && attr_int(node, "hidden_size") != h)
        fail("%s: attribute 'hidden_size' is %lld but its weights have %lld", node_where(g, node), (long long)attr_int(node, "hidden_size"),
             (long long)h);
}

void infer_recurrent(struct graph *g, struct node *node)
{
    struct recurrent_form f = recurrent_form(node);
    struct sizes s = sizes_of(g, node, &f);
    enum dtype x = op_operand(g, node, RECUR_X)->dtype;
    if (!dtype_is_float(x))
        fail("%s: operand X is %s, expected a float", node_where(g, node), dtype_name(x));
    check_directions(g, node, &f, &s);
    check_attributes(g, node, &s);
    check_optional(g, node, &f, &s);
    if (f.quantized)
        check_scales(g, node, &s);
    else
        op_same_dtype(g, node, RECUR_X, RECUR_W);
    op_same_dtype(g, node, RECUR_W, RECUR_R);
    const struct dim *y[2][4] = {{s.t, s.d, s.b, s.h}, {s.b, s.t, s.d, s.h}};
    op_result(g, node, 0, x, 4, y[f.batch_first]);
    for (int i = 1; i < node->nout; i++)
        op_result(g, node, i, x, 3,
                  f.batch_first ? (const struct dim *[]){s.b, s.d, i == 1 ? s.h : s.own}
                                : (const struct dim *[]){s.d, s.b, i == 1 ? s.h : s.own});
}
