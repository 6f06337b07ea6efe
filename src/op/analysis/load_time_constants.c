/* load_time_constants: constant folding when tpc-run loads a graph: values that follow from constants alone, and which of them are computed
 * once. The pass fold (src/op/canon/fold.c) only folds small constants, because a rank's weights must stay ranges of a file. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

static bool has_sizes(const struct node *n)
{
    for (int i = 0; i < n->nattr; i++)
        for (int k = 0; n->attr[i].kind == ATTR_DIMS && n->attr[i].set && k < n->attr[i].n; k++)
            if (!dim_is_int(n->attr[i].dims[k], NULL))
                return true;
    for (int k = 0; k < n->nout; k++)
        for (int d = 0; n->out[k] && d < n->out[k]->type.rank; d++)
            if (!dim_is_int(n->out[k]->type.dim[d], NULL))
                return true;
    return false;
}

bool op_is_load_time_constant(const bool *constant, const struct value *v)
{
    return !v || v->constant || constant[v->id];
}

static bool makes_constants(const bool *constant, const struct node *n)
{
    const unsigned varies = OP_DRAWS | OP_CONTROL;
    bool all = n->nin > 0 && n->op && !(n->op->flags & varies) && !op_communicates(n) && !has_sizes(n);
    for (int k = 0; k < n->nin; k++)
        all = all && op_is_load_time_constant(constant, n->in[k]);
    return all;
}

bool *op_load_time_constants(struct arena *a, const struct graph *g)
{
    bool *constant = NEWN(a, bool, g->values.n + 1);
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nout; k++)
            if (g->nodes.at[i]->out[k])
                constant[g->nodes.at[i]->out[k]->id] = makes_constants(constant, g->nodes.at[i]);
    return constant;
}

/* ---- once ---------------------------------------------------------------------------------------------------------------------------- */

struct beneath {
    bool work;     /* something was computed, not only moved, copied, decoded or converted */
    int64_t bytes; /* of the source constants; one that is read twice counts twice */
};

static int64_t bytes_of(const struct value *v)
{
    int64_t bytes;
    return type_bytes(&v->type, &bytes) ? bytes : INT64_MAX;
}

/* Whether reading the result takes as long as computing it. Not true for a slice, but before the run a Slice of a weight is a Shard, which
 * has no kernel, and predicted memory must equal the run's. */
static bool copies(const struct node *n)
{
    static const char *const ops[] = {"Expand", "Tile", "Concat", "Split", "Slice"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (op_is_onnx(n, ops[i]))
            return true;
    return n->op->flags & OP_REPEATS;
}

static struct beneath beneath_node(const struct beneath *of, const struct node *n)
{
    struct beneath b = {.work = !(n->op->flags & (OP_MOVES | OP_VIEW | OP_DECODES | OP_CONVERTS)) && !copies(n)};
    for (int k = 0; k < n->nin; k++) {
        const struct value *v = n->in[k];
        int64_t bytes = !v ? 0 : v->constant ? bytes_of(v) : of[v->id].bytes;
        b.bytes = b.bytes < INT64_MAX - bytes ? b.bytes + bytes : INT64_MAX;
        b.work = b.work || (v && of[v->id].work);
    }
    return b;
}

static bool is_computable(const struct graph *g, const struct node *n)
{
    bool all = n->nout > 0 && n->op && n->op->kernel && !rank_meta_has_sum(g, n);
    for (int k = 0; k < n->nout; k++)
        all = all && n->out[k] && n->out[k]->type.dtype != DT_STRING;
    return all;
}

struct folding {
    bool *constant, *read; /* by value id: may be computed at load; read by a node that is computed at load */
    bool *changes;         /* by value id: a weight in training, or memory that a node overwrites */
    struct beneath *beneath;
    int64_t room; /* bytes by which results may exceed their sources */
    bool *node;
};

static bool any_operand(const bool *is, const struct node *n)
{
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && is[n->in[k]->id])
            return true;
    return false;
}

static bool any_result(const bool *is, const struct node *n)
{
    for (int k = 0; k < n->nout; k++)
        if (is[n->out[k]->id])
            return true;
    return false;
}

static void mark_changes(const struct graph *g, bool *changes)
{
    for (int i = 0; i < g->values.n; i++)
        changes[i] = g->values.at[i]->constant && g->values.at[i]->constant->trained;
    for (int i = 0; i < g->trained.n; i++)
        changes[g->trained.at[i].weight->id] = true;
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = g->nodes.at[i];
        unsigned flags = n->op && node_operand(n, 0) && node_result(n, 0) ? n->op->flags : 0;
        if (flags & OP_IN_PLACE || (flags & OP_VIEW && changes[n->out[0]->id]))
            changes[n->in[0]->id] = true;
    }
}

static void look_at(const struct graph *g, struct folding *o, const struct node *n)
{
    if (!is_computable(g, n) || !makes_constants(o->constant, n) || any_operand(o->changes, n) || any_result(o->changes, n))
        return;
    struct beneath b = beneath_node(o->beneath, n);
    for (int k = 0; k < n->nout; k++) {
        o->constant[n->out[k]->id] = true;
        o->beneath[n->out[k]->id] = b;
    }
}

/* Whether no node computed at load reads the node, so that its results stay in memory. Decoded or converted constants are read in their
 * stored form. */
static bool pays(struct folding *o, const struct node *n)
{
    struct beneath b = o->beneath[n->out[0]->id];
    int64_t total = 0;
    if (n->op->flags & (OP_DECODES | OP_CONVERTS))
        return false;
    for (int k = 0; k < n->nout; k++)
        if (!i64_add(total, bytes_of(n->out[k]), &total))
            return false;
    if (!b.work || (total > b.bytes && (copies(n) || total - b.bytes > o->room)))
        return false;
    o->room -= total > b.bytes ? total - b.bytes : 0;
    return true;
}

static int64_t all_constants(const struct graph *g)
{
    int64_t all = 0;
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && !i64_add(all, bytes_of(g->values.at[i]), &all))
            return 0;
    return all;
}

bool *op_folded_at_load(struct arena *a, const struct graph *g)
{
    enum { SHARE = 8 };
    int n = g->values.n + 1;
    struct folding o = {.constant = NEWN(a, bool, n), .read = NEWN(a, bool, n), .changes = NEWN(a, bool, n)};
    o.beneath = NEWN(a, struct beneath, n);
    o.node = NEWN(a, bool, g->nodes.n + 1);
    o.room = all_constants(g) / SHARE;
    mark_changes(g, o.changes);
    for (int i = 0; i < g->nodes.n; i++)
        look_at(g, &o, g->nodes.at[i]);
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        const struct node *node = g->nodes.at[i];
        bool possible = node_result(node, 0) && o.constant[node->out[0]->id];
        o.node[i] = possible && (any_result(o.read, node) || pays(&o, node));
        for (int k = 0; o.node[i] && k < node->nin; k++)
            if (node->in[k])
                o.read[node->in[k]->id] = true;
    }
    return o.node;
}
