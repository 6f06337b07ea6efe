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

/* ---- values that an integer input may have ---- */

static int operand_named(const struct node *n, const char *name)
{
    for (int k = 0; n->op && k < n->nin && k < n->op->nin; k++)
        if (n->in[k] && strcmp(n->op->in[k].name, name) == 0)
            return k;
    return -1;
}

/* Rows among which the operand chooses, 1 if their number is not known; -1: it chooses none. */
static int64_t rows_chosen(const struct node *n, int k)
{
    const char *operand = n->op && k < n->op->nin ? n->op->in[k].name : "";
    bool gathers = k == 1 && n->op && strcmp(n->op->name, "GatherND") &&
        (strncmp(n->op->name, "Gather", 6) == 0 || strcmp(n->op->name, "ScatterElements") == 0);
    const char *attribute = gathers && strcmp(n->op->name, "GatherBlockQuantized") == 0 ? "gather_axis" : "axis";
    int axis = gathers ? (int)attr_int(n, attribute) : 0;
    int table = strcmp(operand, "position_ids") == 0 ? operand_named(n, "cos_cache") : gathers ? 0 : -1;
    int64_t rows;
    const struct type *t = table >= 0 && n->in[table] ? &n->in[table]->type : NULL;
    if (t && axis < 0)
        axis += t->rank;
    if (!t || axis < 0 || axis >= t->rank)
        return -1;
    return dim_is_int(t->dim[axis], &rows) ? rows : 1;
}

/* Whether the node asks of the operand only if it is zero, or takes it for a length or a weight of scores. */
static bool reads_as_mask(const struct node *n, int k)
{
    const struct value *out = n->nout > 0 ? n->out[0] : NULL;
    return lengths_operand(n) == k || (out && (out->type.dtype == DT_BOOL || (op_is_onnx(n, "Cast") && dtype_is_float(out->type.dtype))));
}

enum { OF_NONE = -1, OF_SEVERAL = -2 };

/* By value id: the number of the only input that it follows from. */
static int *only_inputs(struct arena *a, const struct graph *g)
{
    int *of = NEWN(a, int, g->values.n);
    for (int i = 0; i < g->values.n; i++)
        of[i] = OF_NONE;
    for (int i = 0; i < g->inputs.n; i++)
        of[g->inputs.at[i]->id] = i;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        int all = OF_NONE;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k] && of[n->in[k]->id] != OF_NONE)
                all = all == OF_NONE || all == of[n->in[k]->id] ? of[n->in[k]->id] : OF_SEVERAL;
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                of[n->out[k]->id] = all;
    }
    return of;
}

static void note_use(const struct graph *g, const struct node *n, int k, int input, struct value_use *use)
{
    const struct type *t = &g->inputs.at[input]->type;
    if (t->dtype != DT_I64 && t->dtype != DT_I32)
        return;
    int64_t rows = rows_chosen(n, k);
    if (rows > 0 && (use->rows < 0 || rows < use->rows))
        use->rows = rows;
    use->mask = use->mask || (t->rank == 2 && reads_as_mask(n, k));
}

struct value_use *op_value_uses(struct arena *a, const struct graph *g)
{
    struct arena *tmp = arena_new();
    struct value_use *use = NEWN(a, struct value_use, g->inputs.n);
    const int *of = only_inputs(tmp, g);
    for (int i = 0; i < g->inputs.n; i++)
        use[i].rows = -1;
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++) {
            const struct value *v = g->nodes.at[i]->in[k];
            if (v && of[v->id] >= 0)
                note_use(g, g->nodes.at[i], k, of[v->id], &use[of[v->id]]);
        }
    for (int i = 0; i < g->inputs.n; i++)
        use[i].mask = use[i].mask && use[i].rows < 0;
    arena_free(tmp);
    return use;
}

int op_tokens_input(const struct value_use *use, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!use[i].mask && use[i].rows > (best >= 0 ? use[best].rows : 1))
            best = i;
    return best;
}

/* ---- tables of positions ---- */

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

/* The dimension of the table that has the rows: of a slice, the one whose result has no fixed size. */
static int rows_dim(const struct node *n)
{
    int d = 0;
    if (op_is_onnx(n, "Slice"))
        while (dim_is_int(n->out[0]->type.dim[d], NULL))
            d++;
    else if (strcmp(n->op->name, "GatherND") != 0)
        d = (int)attr_int(n, strcmp(n->op->name, "GatherBlockQuantized") == 0 ? "gather_axis" : "axis");
    return d < 0 ? d + n->in[0]->type.rank : d;
}

static void note_rows(struct position_tables *all, const struct type *table, int d)
{
    int64_t n;
    if (d < table->rank && dim_is_int(table->dim[d], &n) && (all->rows < 0 || n < all->rows))
        all->rows = n;
}

struct position_tables op_position_tables(const struct graph *g, const struct value *input)
{
    struct arena *tmp = arena_new();
    const enum origin *of = find_origins(tmp, g, input);
    struct position_tables all = {.rows = -1};
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        int rotations = operand_named(n, "cos_cache");
        if (rotations >= 0)
            note_rows(&all, &n->in[rotations]->type, 0);
        if (!takes_rows(n) || of[n->out[0]->id] != (input ? FROM_INPUT : FROM_SIZES))
            continue;
        note_rows(&all, &n->in[0]->type, rows_dim(n));
        all.by_place = all.by_place ? all.by_place : n;
    }
    arena_free(tmp);
    return all;
}
