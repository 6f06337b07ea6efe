/* input_use: what a graph does with an input, by dataflow: whether a mask counts as lengths or hides keys, and where rows of tables are
 * taken by place. */
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <string.h>

enum origin {
    FROM_SIZES, /* constants and sizes only */
    FROM_INPUT, /* the input, and what is from sizes */
    FROM_MORE
};

static enum origin origin_of_node(const struct node *n, const enum origin *of)
{
    enum origin most = FROM_SIZES;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && of[n->in[k]->id] > most)
            most = of[n->in[k]->id];
    return most;
}

/* By value id; input NULL: none. */
static enum origin *find_origins(struct arena *a, const struct graph *g, const struct value *input)
{
    enum origin *of = NEWN(a, enum origin, g->values.n);
    for (int i = 0; i < g->inputs.n; i++)
        of[g->inputs.at[i]->id] = g->inputs.at[i] == input ? FROM_INPUT : FROM_MORE;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                of[n->out[k]->id] = origin_of_node(n, of);
    }
    return of;
}

/* The operand of fused attention that says how many keys each row of the batch has; -1: it has none. */
static int lengths_operand(const struct node *n)
{
    for (int k = 0; n->op && k < n->nin && k < n->op->nin; k++)
        if (n->in[k] && (strcmp(n->op->in[k].name, "seqlens_k") == 0 || strcmp(n->op->in[k].name, "nonpad_kv_seqlen") == 0))
            return k;
    return -1;
}

static bool reads_lengths(const struct node *n)
{
    if (lengths_operand(n) >= 0)
        return true;
    for (int b = 0; n->op && b < node_bodies(n); b++) {
        const struct graph *body = node_body(n, b)->graph;
        for (int i = 0; i < body->nodes.n; i++)
            if (reads_lengths(body->nodes.at[i]))
                return true;
    }
    return false;
}

/* Whether the node counts what is from the mask alone as lengths. A body may. */
static bool takes_as_lengths(const struct node *n, const enum origin *of)
{
    int k = lengths_operand(n);
    if (k >= 0)
        return of[n->in[k]->id] == FROM_INPUT;
    for (k = 0; k < n->nin; k++)
        if (n->in[k] && of[n->in[k]->id] == FROM_INPUT && n->op && node_bodies(n) && reads_lengths(n))
            return true;
    return false;
}

enum mask_use op_mask_use(const struct graph *g, const struct value *mask)
{
    struct arena *tmp = arena_new();
    const enum origin *of = find_origins(tmp, g, mask);
    enum mask_use use = MASK_UNREAD;
    for (int i = 0; i < g->nodes.n && use != MASK_LENGTHS; i++) {
        const struct node *n = g->nodes.at[i];
        if (takes_as_lengths(n, of))
            use = MASK_LENGTHS;
        for (int k = 0; k < n->nin && use == MASK_UNREAD; k++)
            if (n->in[k] && of[n->in[k]->id] == FROM_INPUT)
                use = MASK_KEYS;
    }
    arena_free(tmp);
    return use;
}

static int unknown_sizes(const struct type *t)
{
    int n = 0;
    for (int d = 0; d < t->rank; d++)
        n += !dim_is_int(t->dim[d], NULL);
    return n;
}

/* Rows of a constant table of floats, one for each place along one dimension. By two they are for pairs, as those of a relative bias. */
static bool takes_rows(const struct node *n)
{
    static const char *const op[] = {"Gather", "GatherND", "GatherBlockQuantized", "Slice"};
    bool takes = false;
    for (size_t i = 0; n->op && i < sizeof op / sizeof *op; i++)
        takes = takes || strcmp(n->op->name, op[i]) == 0;
    return takes && n->in[0] && n->in[0]->constant && n->nout > 0 && n->out[0] && n->out[0]->type.rank > 1 &&
        dtype_is_float(n->out[0]->type.dtype) && unknown_sizes(&n->out[0]->type) == 1;
}

const struct node *op_rows_by_place(const struct graph *g, const struct value *input)
{
    struct arena *tmp = arena_new();
    const enum origin *of = find_origins(tmp, g, input);
    const struct node *found = NULL;
    for (int i = 0; i < g->nodes.n && !found; i++) {
        const struct node *n = g->nodes.at[i];
        if (takes_rows(n) && of[n->out[0]->id] == (input ? FROM_INPUT : FROM_SIZES))
            found = n;
    }
    arena_free(tmp);
    return found;
}
