/* coded: what stands between products of integers. Elementwise ops, and those that only move elements, read and write 8-bit codes where the
 * model decodes before them and rounds after them; what is a function of one tensor of codes is a table of all codes. So values are codes
 * that the model has as real numbers, and most of DequantizeLinear and QuantizeLinear is part of other nodes. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

enum { REAL = -2, MIXED = -1 }; /* origin of a value: the tensor of codes that it is a function of; of several; no codes */

static const struct node *reader_at(const struct space *s, const struct value *v, int k)
{
    int node = s->uses[v->id].list.at[k].node;
    return node >= 0 ? s->g->nodes.at[node] : NULL;
}

static bool rounds(const struct node *n)
{
    return op_is_onnx(n, "QuantizeLinear") && dtype_is_byte(n->out[0]->type.dtype) && n->in[1]->type.rank == 0;
}

static bool only_moves(const struct space *s, const struct node *n)
{
    int at = n->nout > 0 && n->out[0] ? s->producer[n->out[0]->id] : -1;
    return at >= 0 && s->rule[at] && s->rule[at]->moves && !cost_is_elementwise(n) && !(n->op->flags & OP_SEEDS);
}

static bool works_on_codes(const struct space *s, const struct node *n)
{
    return cost_is_elementwise(n) || only_moves(s, n);
}

static bool becomes_codes(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    const struct node *first = uses->list.n > 0 ? reader_at(s, v, 0) : NULL;
    if (uses->list.n == 1 && first && rounds(first) && first->in[0] == v)
        return v->producer && works_on_codes(s, v->producer);
    for (int i = 0; i < uses->list.n; i++) {
        const struct node *n = reader_at(s, v, i);
        if (!n || !(works_on_codes(s, n) || cost_multiplies_integers(s, n) || op_is_onnx(n, "GlobalAveragePool")))
            return false;
    }
    return uses->list.n > 0 && cost_has_codes(v);
}

static int *origins(const struct space *s)
{
    return s->sizes.origin;
}

/* Of what an elementwise op makes: that of all its operands. */
static int common_origin(const struct space *s, const struct node *n)
{
    int common = REAL;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i] || s->weight[n->in[i]->id])
            continue;
        int own = origins(s)[n->in[i]->id];
        if (own < 0 || (common >= 0 && common != own))
            return MIXED;
        common = own;
    }
    return common;
}

static int origin_of(const struct space *s, const struct value *v)
{
    const struct node *n = v->producer;
    if (rounds(n) && origins(s)[n->in[0]->id] >= 0)
        return origins(s)[n->in[0]->id];
    if (dtype_is_byte(v->type.dtype))
        return v->id;
    if (!becomes_codes(s, v))
        return REAL;
    return cost_has_codes(v) ? origins(s)[n->in[0]->id] : cost_is_elementwise(n) ? common_origin(s, n) : MIXED;
}

void cost_mark_coded(struct space *s)
{
    s->sizes.origin = NEWN(s->arena, int, s->g->values.n + 1);
    for (int i = 0; i < s->g->values.n; i++)
        s->sizes.origin[i] = dtype_is_byte(s->g->values.at[i]->type.dtype) ? i : REAL;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->g->nodes.at[i]->nout == 1 && s->g->nodes.at[i]->out[0])
            s->sizes.origin[s->g->nodes.at[i]->out[0]->id] = origin_of(s, s->g->nodes.at[i]->out[0]);
}

bool cost_is_coded(const struct space *s, const struct value *v)
{
    return s->sizes.origin && !dtype_is_byte(v->type.dtype) && origins(s)[v->id] != REAL;
}

static bool is_in_table(const struct space *s, const struct node *n)
{
    return n && cost_is_elementwise(n) && !cost_has_codes(n->out[0]) && cost_is_coded(s, n->out[0]) && origins(s)[n->out[0]->id] >= 0;
}

/* Does every reader of a decoded value belong to a table, or to what `other` says? */
static bool only_free_readers(const struct space *s, const struct value *v, bool moves_too)
{
    for (int i = 0; i < s->uses[v->id].list.n; i++) {
        const struct node *n = reader_at(s, v, i);
        if (!is_in_table(s, n) && !(moves_too && n && !cost_is_elementwise(n)))
            return false;
    }
    return true;
}

/* Codes that are read only for the same table. */
static bool stays_in_table(const struct space *s, const struct value *codes)
{
    for (int i = 0; i < s->uses[codes->id].list.n; i++) {
        const struct node *n = reader_at(s, codes, i);
        if (!n || !cost_has_codes(n->out[0]) || !cost_is_coded(s, n->out[0]) || !only_free_readers(s, n->out[0], false))
            return false;
    }
    return true;
}

static const struct node *only_reader(const struct space *s, const struct value *v)
{
    return s->uses[v->id].list.n == 1 ? reader_at(s, v, 0) : NULL;
}

/* v is decoded from what a convolution of integers rounds, for one Add. */
static bool is_rounded_sum(const struct space *s, const struct value *v)
{
    const struct node *decodes = v->producer, *encodes = decodes && cost_has_codes(v) ? decodes->in[0]->producer : NULL;
    return encodes && rounds(encodes) && cost_taken_operand(s, encodes) >= 0 && op_is_onnx(encodes->in[0]->producer, "Conv") &&
        only_reader(s, decodes->in[0]) && only_reader(s, v) && op_is_onnx(only_reader(s, v), "Add");
}

/* The operand of a sum of codes, rounded again, that a convolution takes in (lower/fuse/fuse_conv.c); -1: none does. */
static int residual_operand(const struct space *s, const struct node *n)
{
    const struct node *next = op_is_onnx(n, "Add") ? only_reader(s, n->out[0]) : NULL;
    next = next && op_is_onnx(next, "Relu") ? only_reader(s, next->out[0]) : next;
    if (!next || !rounds(next) || !cost_has_codes(n->in[0]) || !cost_has_codes(n->in[1]))
        return -1;
    return is_rounded_sum(s, n->in[0]) ? 0 : is_rounded_sum(s, n->in[1]) ? 1 : -1;
}

/* What decodes that operand, and what rounds the sum. */
static bool is_in_residual(const struct space *s, const struct node *n)
{
    const struct node *sum = rounds(n) ? n->in[0]->producer : only_reader(s, n->out[0]);
    sum = sum && rounds(n) && op_is_onnx(sum, "Relu") ? sum->in[0]->producer : sum;
    int at = sum ? residual_operand(s, sum) : -1;
    return at >= 0 && (rounds(n) || sum->in[at] == n->out[0]);
}

enum coding cost_coding(const struct space *s, const struct node *n)
{
    if (!s->sizes.origin || n->nout != 1 || !n->out[0])
        return CODING_NONE;
    if (is_in_table(s, n) || is_in_residual(s, n))
        return CODING_FREE;
    if (rounds(n) && cost_is_coded(s, n->in[0])) {
        const struct node *maker = n->in[0]->producer;
        if (is_in_table(s, maker))
            return stays_in_table(s, n->out[0]) ? CODING_FREE : CODING_EACH;
        return cost_is_elementwise(maker) ? CODING_EACH : CODING_FREE;
    }
    if (cost_has_codes(n->out[0]) && cost_is_coded(s, n->out[0]))
        return only_free_readers(s, n->out[0], true) ? CODING_FREE : CODING_EACH;
    return CODING_NONE;
}
