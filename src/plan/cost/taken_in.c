/* taken_in: what a run does not do node by node, and so costs next to nothing.
 *
 * A convolution takes in the elementwise ops after it, whose other operands are constants or a value of its result's type
 * (lower/fuse/fuse_conv.c), and a Pad before it. And it works with the channels last (lower/layout/channels_last.c), so a Transpose of
 * channels around it vanishes. A value that only it has so is turned once. Products of integers read codes
 * (lower/quantized/fuse_integer_conv.c, fuse_integers.c), so what decodes these vanishes, too. Attention that is written out runs as one
 * node (op/analysis/attention_written.c), which reads its operands once. Products of constants are computed at load
 * (op/analysis/load_time_constants.c). */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

enum { TAKES = 1, TAKEN = 2, LAST = 4, MERGED = 8, INSIDE = 16, INTEGER = 32, TURNED = 64, ONCE = 128 }; /* by value id */

bool cost_is_elementwise(const struct node *n)
{
    return (n->op && n->op->flags & OP_ELEMENTWISE) || op_is_onnx(n, "BatchNormalization");
}

/* Convolutions and pools. */
static bool works_last(const struct space *s, int node)
{
    const struct rule *rule = s->rule[node];
    for (int d = 0; rule && rule->nin > 0 && d < rule->in[0].rank; d++)
        if (rule->in[0].dim[d].window)
            return true;
    return op_is_onnx(s->g->nodes.at[node], "Conv");
}

static bool marked(const struct space *s, const struct value *v, int mark)
{
    return v && s->sizes.marks[v->id] & mark;
}

static bool makes_marked(const struct space *s, const struct node *n, int mark)
{
    return s->sizes.marks && n->nout > 0 && marked(s, n->out[0], mark);
}

static void mark_value(struct space *s, const struct value *v, unsigned char mark)
{
    s->sizes.marks[v->id] = (unsigned char)(s->sizes.marks[v->id] | mark);
}

/* ---- channels last ------------------------------------------------------------------------------------------------------------------ */

/* What reads and makes values with the channels last if one of them has. */
static bool keeps_last(const struct node *n)
{
    static const char *const ops[] = {
        "Concat", "Split", "Slice", "Resize", "DynamicQuantizeLinear", "InstanceNormalization", "GroupNormalization"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (op_is_onnx(n, ops[i]))
            return true;
    return cost_is_elementwise(n);
}

static void mark_last(struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    bool last = works_last(s, i);
    for (int k = 0; k < n->nin && keeps_last(n); k++)
        last |= n->in[k] && n->in[k]->type.rank == n->out[0]->type.rank && marked(s, n->in[k], LAST);
    for (int k = 0; k < n->nout && last; k++)
        if (n->out[k] && n->out[k]->type.rank > 2)
            mark_value(s, n->out[k], LAST);
}

static bool only_convolutions_read(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    for (int i = 0; i < uses->list.n; i++)
        if (uses->list.at[i].node < 0 || !op_is_onnx(s->g->nodes.at[uses->list.at[i].node], "Conv"))
            return false;
    return uses->list.n > 0;
}

/* Operands of what reads them with the channels last. A Pad before convolutions becomes padding of theirs. */
static void mark_last_operands(struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    if (op_is_onnx(n, "Pad") && only_convolutions_read(s, n->out[0])) {
        mark_value(s, n->out[0], MERGED);
        mark_value(s, n->in[0], LAST);
        return;
    }
    bool last = works_last(s, i);
    int operands = last ? 1 : keeps_last(n) && marked(s, n->out[0], LAST) ? n->nin : 0;
    for (int k = 0; k < operands; k++)
        if (n->in[k] && n->in[k]->type.rank == n->out[0]->type.rank && n->in[k]->type.rank > 2)
            mark_value(s, n->in[k], LAST);
}

/* Does the Transpose move dimension `from` to `to` and leave the others in order? */
static bool moves_dimension(const struct graph *g, const struct node *n, int from, int to)
{
    const int64_t *perm;
    int rank = n->in[0]->type.rank, k = 0;
    if (rank < 3 || attr_ints(g, n, "perm", &perm) != rank)
        return false;
    for (int d = 0; d < rank; d++) {
        k += k == from;
        if (perm[d] != (d == to ? from : k))
            return false;
        k += d != to;
    }
    return true;
}

static bool is_merged(const struct space *s, const struct node *n)
{
    if (!op_is_onnx(n, "Transpose"))
        return false;
    int last = n->in[0]->type.rank - 1;
    return (marked(s, n->in[0], LAST) && moves_dimension(s->g, n, 1, last)) ||
        (marked(s, n->out[0], LAST) && moves_dimension(s->g, n, last, 1));
}

/* More than one place and more than one channel: else both forms have the same bytes. */
static bool forms_differ(const struct type *t)
{
    bool places = false;
    for (int d = 2; d < t->rank; d++)
        places |= !dim_equals(t->dim[d], 1);
    return places && !dim_equals(t->dim[1], 1);
}

/* Behind mark_last: a convolution reads what nothing makes with the channels last, another product what something makes so. It is turned
 * for the first of its readers. */
static void mark_turned(struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    const struct value *x = n->nin > 0 ? n->in[0] : NULL;
    if (!x || !(n->op && n->op->flags & OP_PRODUCT) || !forms_differ(&x->type) || s->uses[x->id].list.at[0].node != i)
        return;
    bool conv = op_is_onnx(n, "Conv"), moved = op_made_by(x, "Transpose") || op_made_by(x, "Pad");
    if (conv ? !marked(s, x, LAST) && !moved : marked(s, x, LAST))
        mark_value(s, n->out[0], TURNED);
}

/* ---- products of integers ----------------------------------------------------------------------------------------------------------- */

bool cost_has_codes(const struct value *v)
{
    const struct node *d = op_byte_decoder(v);
    int64_t rank = d ? d->in[1]->type.rank : 0;
    return d && (rank == 0 || (rank == 1 && dim_equals(d->in[1]->type.dim[0], 1)));
}

bool cost_multiplies_integers(const struct space *s, const struct node *n)
{
    if (!n->op || n->nin < 2 || !n->in[0] || !n->in[1] || !(n->op->flags & OP_PRODUCT) || !s->weight[n->in[1]->id])
        return false;
    if (op_is_onnx(n, "Conv"))
        return op_integer_conv(n);
    bool plain = op_is_onnx(n, "MatMul") || op_is_onnx(n, "Gemm");
    return dtype_is_integer(n->in[1]->type.dtype) || (plain && cost_has_codes(n->in[0]) && op_byte_decoder(n->in[1]));
}

/* v is made from codes for the sake of such products. */
static bool only_integer_products_read(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    if (!cost_has_codes(v))
        return false;
    for (int i = 0; i < uses->list.n; i++)
        if (uses->list.at[i].node < 0 || uses->list.at[i].operand != 0 ||
            !cost_multiplies_integers(s, s->g->nodes.at[uses->list.at[i].node]))
            return false;
    return uses->list.n > 0;
}

/* ---- elementwise ops after a convolution -------------------------------------------------------------------------------------------- */

static bool only_elementwise_reads(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    for (int i = 0; i < uses->list.n; i++) {
        const struct node *n = uses->list.at[i].node >= 0 ? s->g->nodes.at[uses->list.at[i].node] : NULL;
        if (!n || !(cost_is_elementwise(n) || makes_marked(s, n, MERGED)))
            return false;
    }
    return uses->list.n > 0;
}

/* Of the ops that change the type only a convolution of integers takes some. */
static bool may_take(const struct space *s, const struct node *n, const struct value *v)
{
    bool rounds = op_is_onnx(n, "QuantizeLinear") && !op_byte_decoder(v);
    return type_eq(&v->type, &n->out[0]->type) || (marked(s, v, INTEGER) && (rounds || op_is_onnx(n, "Cast")));
}

/* Operand k of n, which a convolution makes, if it takes in n; -1: none. One of integers takes a product with a number that is computed. */
static int taken_operand(const struct space *s, const struct node *n)
{
    int taken = -1;
    for (int k = 0; k < n->nin; k++) {
        const struct value *v = n->in[k];
        if (v && taken < 0 && marked(s, v, TAKES) && may_take(s, n, v))
            taken = k;
        else if (v && !s->weight[v->id] && v->type.rank > 0 && !type_eq(&v->type, &n->out[0]->type))
            return -1;
    }
    return taken;
}

static void mark_taken(struct space *s, const struct node *n)
{
    bool conv = op_is_onnx(n, "Conv"), takes = conv || (marked(s, n->out[0], MERGED) && marked(s, n->in[0], TAKES));
    int taken = cost_is_elementwise(n) ? taken_operand(s, n) : -1;
    if (taken >= 0) {
        mark_value(s, n->out[0], TAKEN);
        takes = !op_is_onnx(n, "QuantizeLinear");
    }
    if (conv ? cost_multiplies_integers(s, n) : taken >= 0 && marked(s, n->in[taken], INTEGER))
        mark_value(s, n->out[0], INTEGER);
    if (takes && only_elementwise_reads(s, n->out[0]))
        mark_value(s, n->out[0], TAKES);
}

/* ---- attention that is written out ------------------------------------------------------------------------------------------------- */

static bool is_operand(const struct attention_match *m, const struct value *v)
{
    for (int k = ATTENTION_Q; k <= ATTENTION_MASK; k++)
        if (m->in[k] == v)
            return true;
    return false;
}

static bool only_inside_reads(const struct space *s, const struct value *v, const struct node *last)
{
    const struct place_uses *uses = &s->uses[v->id];
    for (int i = 0; i < uses->list.n; i++) {
        const struct node *n = uses->list.at[i].node >= 0 ? s->g->nodes.at[uses->list.at[i].node] : NULL;
        if (n != last && (!n || !makes_marked(s, n, INSIDE)))
            return false;
    }
    return true;
}

/* What is made from the operands for the node's sake only, from the end on. */
static void mark_inside(struct space *s, const struct attention_match *m, const struct node *n)
{
    for (int k = 0; k < n->nin; k++) {
        struct value *v = n->in[k];
        if (!v || !v->producer || is_operand(m, v) || !only_inside_reads(s, v, m->last))
            continue;
        mark_value(s, v, INSIDE);
        mark_inside(s, m, v->producer);
    }
}

static void mark_attention(struct space *s)
{
    struct arena *tmp = arena_new();
    struct attention_search search = {.graph = s->g, .uses = graph_uses(s->g, tmp), .nvalues = s->g->values.n};
    struct attention_match m;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (attention_written(&search, s->g->nodes.at[i], &m))
            mark_inside(s, &m, m.last);
    arena_free(tmp);
}

static void mark_once(struct space *s)
{
    struct arena *tmp = arena_new();
    const bool *once = op_folded_at_load(tmp, s->g);
    for (int i = 0; i < s->g->nodes.n; i++)
        for (int k = 0; once[i] && k < s->g->nodes.at[i]->nout; k++)
            if (s->g->nodes.at[i]->out[k])
                mark_value(s, s->g->nodes.at[i]->out[k], ONCE);
    arena_free(tmp);
}

/* ---- for the prices -------------------------------------------------------------------------------------------------------------------
 */

static const struct node *with_result(const struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    return n->nout > 0 && n->out[0] ? n : NULL;
}

void cost_mark_taken(struct space *s)
{
    s->sizes.marks = NEWN(s->arena, unsigned char, s->g->values.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (with_result(s, i))
            mark_last(s, i);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (with_result(s, i))
            mark_turned(s, i);
    for (int i = s->g->nodes.n - 1; i >= 0; i--)
        if (with_result(s, i))
            mark_last_operands(s, i);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (with_result(s, i) && (is_merged(s, s->g->nodes.at[i]) || only_integer_products_read(s, s->g->nodes.at[i]->out[0])))
            mark_value(s, s->g->nodes.at[i]->out[0], MERGED);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (with_result(s, i))
            mark_taken(s, s->g->nodes.at[i]);
    mark_attention(s);
    mark_once(s);
}

bool cost_is_folded(const struct space *s, const struct node *n)
{
    return makes_marked(s, n, ONCE);
}

bool cost_is_merged(const struct space *s, const struct node *n)
{
    return makes_marked(s, n, MERGED);
}

bool cost_turns_operand(const struct space *s, const struct node *n)
{
    return makes_marked(s, n, TURNED);
}

bool cost_has_channels_last(const struct space *s, const struct value *v)
{
    return s->sizes.marks && marked(s, v, LAST);
}

bool cost_takes_in(const struct space *s, const struct node *n)
{
    return makes_marked(s, n, TAKES);
}

int cost_taken_operand(const struct space *s, const struct node *n)
{
    return makes_marked(s, n, TAKEN) ? taken_operand(s, n) : -1;
}

bool cost_is_inside(const struct space *s, const struct value *v)
{
    return s->sizes.marks && marked(s, v, INSIDE);
}
