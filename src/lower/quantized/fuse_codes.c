/* fuse_codes: moves rounding to bytes before nodes that only move elements (Concat, Slice, Transpose, Resize to the nearest ..), so that
 * these move bytes:
 *
 *     QuantizeLinear(move(x))                     move(QuantizeLinear(x)): the same bytes
 *     QuantizeLinear(move(DequantizeLinear(x)))   move(x), if both have one scale and zero point
 *
 * if nothing else reads the moved value. MaxPool of decoded bytes counts as such a move: rounding is monotone. */
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

struct code_search {
    struct graph *g;
    const struct uses *uses;
    int nvalues;
};

static bool is_nearest(const struct node *n)
{
    return op_is_onnx(n, "Resize") && strcmp(attr_string(n, "mode"), "nearest") == 0 &&
        strcmp(attr_string(n, "coordinate_transformation_mode"), "tf_crop_and_resize") != 0;
}

/* The number of leading operands whose elements the node moves; 0: it does more. */
static int moved_operands(const struct node *n)
{
    static const char *const one[] = {"Slice", "Split", "Expand", "Tile", "Gather", "DepthToSpace", "SpaceToDepth"};
    if (!n->op || n->nin < 1)
        return 0;
    if (n->op->flags & (OP_COLLECTIVE | OP_CONTROL | OP_IN_PLACE))
        return 0;
    if (op_is_onnx(n, "Concat"))
        return n->nin;
    bool pool = op_is_onnx(n, "MaxPool") || op_is_onnx(n, "GlobalMaxPool");
    bool moves = n->op->flags & OP_MOVES || is_nearest(n) || (pool && byte_scale_decoder(n->in[0]));
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        moves = moves || op_is_onnx(n, one[i]);
    return moves ? 1 : 0;
}

/* The only reader of v, if it rounds v to bytes. */
static struct node *rounded_by(const struct code_search *s, const struct value *v)
{
    struct node *q = v && graph_reads_once(s->uses, s->nvalues, v) ? s->uses[v->id].at[0].node : NULL;
    return q && byte_scale_encodes(q) ? q : NULL;
}

/* The QuantizeLinear that all results have alike; NULL: none. */
static struct node *rounding_of(const struct code_search *s, const struct node *n)
{
    struct node *first = n->nout > 0 ? rounded_by(s, n->out[0]) : NULL;
    for (int k = 1; first && k < n->nout; k++) {
        const struct node *q = rounded_by(s, n->out[k]);
        if (!q || !byte_scale_same(q, first))
            return NULL;
    }
    return first;
}

/* x as bytes of q: those that it was decoded from, or those of a new QuantizeLinear before node *at. */
static struct value *rounded(struct code_search *s, struct value *x, const struct node *q, int *at)
{
    const struct node *d = byte_scale_decoder(x);
    if (d && byte_scale_same(d, q))
        return d->in[0];
    struct value **in = NEWN(s->g->arena, struct value *, q->nin);
    memcpy(in, q->in, (size_t)q->nin * sizeof(struct value *));
    in[0] = x;
    struct type type = x->type;
    type.dtype = q->out[0]->type.dtype;
    struct value *codes = graph_form(s->g, x, arena_printf(s->g->arena, "%s/%s", x->name, q->name), &type);
    struct node *made = graph_node_like(s->g, q, codes->name, q->nin, in);
    node_output(s->g, made, 0, codes);
    graph_insert(s->g, (*at)++, made);
    return codes;
}

/* Lets node number `at` move bytes, in place of the nodes that rounded its results; returns its new number. */
static int move_codes(struct code_search *s, int at, int operands, const struct node *q)
{
    struct node *n = s->g->nodes.at[at];
    for (int k = 0; k < operands; k++)
        n->in[k] = rounded(s, n->in[k], q, &at);
    for (int k = 0; k < n->nout; k++)
        node_output(s->g, n, k, s->uses[n->out[k]->id].at[0].node->out[0]);
    return at;
}

/* Removes nodes whose result another node makes now. */
static void remove_replaced(struct graph *g)
{
    int kept = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (n->nout == 0 || !n->out[0] || n->out[0]->producer == n)
            g->nodes.at[kept++] = n;
    }
    g->nodes.n = kept;
}

/* One walk over the nodes; whether anything changed. */
static bool move_all(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct code_search s = {g, graph_uses(g, tmp), g->values.n};
    bool some = false;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *q;
        int operands = moved_operands(n);
        if (operands == 0 || !(q = rounding_of(&s, n)))
            continue;
        i = move_codes(&s, i, operands, q);
        some = true;
    }
    remove_replaced(g);
    arena_free(tmp);
    return some;
}

void fuse_codes(struct graph *g)
{
    while (move_all(g))
        graph_prune(g);
}
