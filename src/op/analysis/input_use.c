/* input_use: how a graph uses an input, by dataflow: whether a mask gives lengths or hides keys, and where tables are read by position. */
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <string.h>

enum origin {
    FROM_SIZES, /* constants and sizes only */
    FROM_INPUT, /* the input, and values from sizes */
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

/* The operand of fused attention with the number of keys of each row of the batch; -1: none. */
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

/* Whether the node uses values from the mask alone as lengths. A body may. */
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

static const char *const mask_uses[] = {[MASK_UNREAD] = "unread", [MASK_KEYS] = "keys", [MASK_LENGTHS] = "lengths"};

static enum mask_use stated_mask_use(const struct graph *g, const char *input)
{
    const char *text = rank_meta_mask_use(g, input);
    for (int i = 0; text && i <= MASK_LENGTHS; i++)
        if (strcmp(text, mask_uses[i]) == 0)
            return (enum mask_use)i;
    return MASK_UNREAD;
}

enum mask_use op_mask_use(const struct graph *g, const struct value *mask)
{
    if (rank_meta_is_stage(g))
        return stated_mask_use(g, mask->name);
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

/* Whether the node only tests the operand for zero, or uses it as a length or a weight of scores. */
static bool reads_as_mask(const struct node *n, int k)
{
    const struct value *out = n->nout > 0 ? n->out[0] : NULL;
    return lengths_operand(n) == k || (out && (out->type.dtype == DT_BOOL || (op_is_onnx(n, "Cast") && dtype_is_float(out->type.dtype))));
}

enum { OF_NONE = -1, OF_SEVERAL = -2 };

/* Values that depend on one input alone, by value id. */
struct sole_inputs {
    int *of;       /* its number */
    bool *counted; /* by summing or comparing elements, so it is no row index */
};

static struct sole_inputs sole_inputs(struct arena *a, const struct graph *g)
{
    struct sole_inputs s = {NEWN(a, int, g->values.n + 1), NEWN(a, bool, g->values.n + 1)};
    for (int i = 0; i < g->values.n; i++)
        s.of[i] = OF_NONE;
    for (int i = 0; i < g->inputs.n; i++)
        s.of[g->inputs.at[i]->id] = i;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        int all = OF_NONE;
        bool counted = op_is_onnx(n, "CumSum") || op_is_onnx(n, "ReduceSum") || (node_result(n, 0) && n->out[0]->type.dtype == DT_BOOL);
        for (int k = 0; k < n->nin; k++) {
            const int *of = n->in[k] ? &s.of[n->in[k]->id] : NULL;
            if (of && *of != OF_NONE)
                all = all == OF_NONE || all == *of ? *of : OF_SEVERAL;
            counted = counted || (of && s.counted[n->in[k]->id]);
        }
        for (int k = 0; k < n->nout; k++)
            if (n->out[k]) {
                s.of[n->out[k]->id] = all;
                s.counted[n->out[k]->id] = counted;
            }
    }
    return s;
}

static void take_lesser(int64_t *rows, int64_t n)
{
    if (n > 0 && (*rows < 0 || n < *rows))
        *rows = n;
}

static void note_use(const struct graph *g, const struct node *n, int k, const struct sole_inputs *s, struct value_use *use)
{
    int input = s->of[n->in[k]->id];
    if (input < 0 || (g->inputs.at[input]->type.dtype != DT_I64 && g->inputs.at[input]->type.dtype != DT_I32))
        return;
    if (!s->counted[n->in[k]->id])
        take_lesser(&use[input].rows, op_rows_chosen(n, k));
    use[input].mask = use[input].mask || (g->inputs.at[input]->type.rank == 2 && reads_as_mask(n, k));
}

/* The least possible sizes, and one number for all integers of inputs. */
struct least_case {
    struct arena *arena;
    struct bindings b;
    int64_t held;
};

static void bind_least(void *least_case, const struct dim *symbol)
{
    struct least_case *c = least_case;
    bindings_set(c->arena, &c->b, symbol->name, index_limits_is_value(symbol->name) ? c->held : symbol->lo > 1 ? symbol->lo : 1);
}

static bool within_limit(struct arena *a, const struct index_limit *l, int64_t held)
{
    struct least_case c = {.arena = a, .held = held};
    int64_t last, rows;
    dim_each_symbol(l->last, bind_least, &c);
    dim_each_symbol(l->rows, bind_least, &c);
    return dim_eval(l->last, &c.b, &last) && dim_eval(l->rows, &c.b, &rows) && last < rows;
}

/* How many of the first n integers keep the index within its table. */
static int64_t rows_within(struct arena *a, const struct index_limit *l, int64_t n)
{
    int64_t lo = 0;
    while (lo < n) {
        int64_t mid = lo + (n - lo) / 2;
        if (within_limit(a, l, mid))
            lo = mid + 1;
        else
            n = mid;
    }
    return lo;
}

enum { USUAL_INTEGERS = 8 }; /* of an input that indexes no table */

static void limit_values(struct arena *a, const struct graph *g, const struct index_limits *limits, struct value_use *use)
{
    for (int i = 0; i < g->inputs.n; i++)
        for (int k = 0; k < limits->list.n && !use[i].mask; k++) {
            if (!dim_uses(limits->list.at[k].last, index_limits_symbol(a, i)))
                continue;
            int64_t usual = use[i].rows < 0 ? USUAL_INTEGERS : use[i].rows, rows = rows_within(a, &limits->list.at[k], usual);
            if (rows > 0 && rows < usual)
                use[i].rows = rows;
        }
}

static bool *masks_of(struct arena *a, const struct graph *g, const struct value_use *use)
{
    bool *mask = NEWN(a, bool, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++)
        mask[i] = use[i].mask;
    return mask;
}

/* By the tables that inputs index directly. */
static struct value_use *direct_uses(struct arena *a, const struct graph *g)
{
    struct value_use *use = NEWN(a, struct value_use, g->inputs.n + 1);
    const struct sole_inputs sole = sole_inputs(a, g);
    for (int i = 0; i < g->inputs.n; i++)
        use[i].rows = -1;
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++)
            if (g->nodes.at[i]->in[k])
                note_use(g, g->nodes.at[i], k, &sole, use);
    for (int i = 0; i < g->inputs.n; i++)
        use[i].mask = use[i].mask && use[i].rows < 0;
    return use;
}

struct value_use *op_value_uses(struct arena *a, struct graph *g)
{
    struct value_use *use = direct_uses(a, g);
    const struct index_limits limits = index_limits_find(a, g, masks_of(a, g, use));
    limit_values(a, g, &limits, use);
    return use;
}

struct index_limits op_size_limits(struct arena *a, struct graph *g)
{
    const struct index_limits all = index_limits_find(a, g, masks_of(a, g, direct_uses(a, g)));
    struct index_limits kept = {0};
    for (int i = 0; i < all.list.n; i++) {
        const struct index_limit *l = &all.list.at[i];
        bool same = !l->exact;
        for (int k = 0; k < kept.list.n && !same; k++)
            same = kept.list.at[k].last == l->last && dim_ge(g->alg, l->rows, kept.list.at[k].rows);
        if (!same)
            VEC_PUSH(a, &kept.list, *l);
    }
    return kept;
}
void op_note_inputs(struct arena *a, struct graph *to, struct graph *g)
{
    const struct value_use *use = op_value_uses(a, g);
    const struct index_limits limits = op_size_limits(a, g);
    for (int i = 0; i < g->inputs.n; i++)
        rank_meta_set_values(to, g->inputs.at[i]->name, use[i].rows, use[i].mask);
    for (int i = 0; i < limits.list.n; i++)
        rank_meta_set_limit(to, i, &limits.list.at[i]);
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

/* Whether the node reads rows of a constant float table with one row per position along one dimension. Tables with two such dimensions are
 * for pairs, as for a relative bias. */
static bool takes_rows(const struct node *n)
{
    static const char *const op[] = {"Gather", "GatherND", "GatherBlockQuantized", "Slice"};
    bool takes = false;
    for (size_t i = 0; n->op && i < sizeof op / sizeof *op; i++)
        takes = takes || strcmp(n->op->name, op[i]) == 0;
    return takes && n->in[0] && n->in[0]->constant && node_result(n, 0) && n->out[0]->type.rank > 1 &&
        dtype_is_float(n->out[0]->type.dtype) && unknown_sizes(&n->out[0]->type) == 1;
}

/* The dimension along which a slice takes rows: the one whose result has no fixed size. */
static int rows_dim(const struct node *n)
{
    int d = 0;
    while (dim_is_int(n->out[0]->type.dim[d], NULL))
        d++;
    return d;
}

static void note_rows(struct position_tables *all, const struct type *table, int d)
{
    int64_t n;
    if (d < table->rank && dim_is_int(table->dim[d], &n) && (all->rows < 0 || n < all->rows))
        all->rows = n;
}

struct position_tables op_position_tables(const struct graph *g, const struct value *input)
{
    struct position_tables all = {.rows = -1};
    if (rank_meta_is_stage(g)) {
        rank_meta_tables(g, input ? input->name : "", &all.rows, &all.by_place);
        return all;
    }
    struct arena *tmp = arena_new();
    const enum origin *of = find_origins(tmp, g, input);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        int rotations = operand_named(n, "cos_cache");
        if (rotations >= 0)
            note_rows(&all, &n->in[rotations]->type, 0);
        if (!takes_rows(n) || of[n->out[0]->id] != (input ? FROM_INPUT : FROM_SIZES))
            continue;
        if (op_is_onnx(n, "Slice"))
            note_rows(&all, &n->in[0]->type, rows_dim(n));
        all.by_place = all.by_place ? all.by_place : n->name;
    }
    arena_free(tmp);
    return all;
}

static void note_tables(struct graph *to, const struct graph *whole, const struct value *input)
{
    const struct position_tables t = op_position_tables(whole, input);
    if (t.rows >= 0 || t.by_place)
        rank_meta_set_tables(to, input ? input->name : "", t.rows, t.by_place);
}

void op_note_whole(struct graph *to, const struct graph *whole)
{
    note_tables(to, whole, NULL);
    for (int i = 0; i < whole->inputs.n; i++) {
        const struct value *v = whole->inputs.at[i];
        if (dtype_is_float(v->type.dtype))
            continue;
        enum mask_use use = op_mask_use(whole, v);
        if (use != MASK_UNREAD)
            rank_meta_set_mask_use(to, v->name, mask_uses[use]);
        note_tables(to, whole, v);
    }
}
