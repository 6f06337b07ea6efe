/* last_position: in a prompt, only the logits of each row's last token are read, or of a few. The nodes that compute positions
 * independently up to the logits (position_tail.c) get only these positions: with a large vocabulary they are up to half of the work, and
 * most of the memory.
 *
 * At the start of the tail, a Gather selects the positions that a new input gives. They are the same for all rows, unless padding follows
 * their tokens; then each row has its own. */
#include "decode/stage/stage.h"
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"

#include <string.h>

/* ---- what can be taken -------------------------------------------------------------------------------------------------------------- */

/* Whether padding may follow the tokens of a row. */
static bool rows_may_differ(const struct stage *s)
{
    int mask = decode_find_input(s, ROLE_MASK);
    return mask >= 0 && op_mask_use(s->graph, s->graph->inputs.at[mask]) == MASK_LENGTHS;
}

/* The symbols of tokens [rows, positions]; rows NULL: all rows end at the same position. False: they are no symbols. */
static bool token_symbols(const struct stage *s, const struct dim **rows, const struct dim **positions)
{
    int tokens = decode_find_input(s, ROLE_TOKENS);
    const struct type *t = tokens < 0 ? NULL : &s->graph->inputs.at[tokens]->type;
    if (!t || t->rank != 2)
        return false;
    *positions = dim_rewrite(s->graph->alg, t->dim[1]);
    *rows = rows_may_differ(s) ? dim_rewrite(s->graph->alg, t->dim[0]) : NULL;
    return (*positions)->kind == DIM_SYM && (!*rows || (*rows)->kind == DIM_SYM) && *rows != *positions;
}

/* ---- how the graph changes ---------------------------------------------------------------------------------------------------------- */

/* i64[taken], or i64[rows, taken, 1]: an index tuple for each position of a row. */
static struct value *add_input(struct graph *g, const struct dim *rows, const struct dim *taken)
{
    struct type type = {.dtype = DT_I64, .rank = rows ? 3 : 1, .dim = {rows ? rows : taken, taken, dim_int(g->alg, 1)}};
    struct value *v = graph_value(g, "last_position", &type);
    VEC_PUSH(g->arena, &g->inputs, v);
    if (g->rank_meta)
        rank_meta_set_value(g, RANK_INPUT, v->name, &type, placement_replicated);
    return v;
}

static struct node *take_position(struct graph *g, const struct position_cut *cut, struct value *index, bool by_row)
{
    struct value *in[2] = {cut->value, index};
    const char *name = arena_printf(g->arena, "%s/last", cut->value->name);
    struct node *n = op_node(g, "", by_row ? "GatherND" : "Gather", name, 2, in);
    attr_set_int(n, by_row ? "batch_dims" : "axis", cut->dim);
    op_infer(g, n);
    return n;
}

static void read_taken(const struct position_tail *t, const struct value *whole, struct value *taken)
{
    for (int i = 0; i < t->nodes.n; i++)
        for (int k = 0; k < t->nodes.at[i]->nin; k++)
            if (t->nodes.at[i]->in[k] == whole)
                t->nodes.at[i]->in[k] = taken;
}

/* `taken` positions instead of the symbol's. Inference must agree with what the rules proved. */
static void type_results(struct graph *g, struct node *n, const struct dim *symbol, const struct dim *taken)
{
    struct type *own = NEWN(g->arena, struct type, n->nout);
    for (int k = 0; k < n->nout; k++) {
        int d;
        if (!n->out[k])
            continue;
        if (symbol_dims(g, symbol, n->out[k], &d))
            n->out[k]->type.dim[d] = dim_mul(g->alg, taken, dim_quotient(g->alg, dim_rewrite(g->alg, n->out[k]->type.dim[d]), symbol));
        own[k] = n->out[k]->type;
    }
    op_infer(g, n);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && !type_eq(&own[k], &n->out[k]->type))
            bug("%s: taken positions are %s, expected %s", node_where(g, n), type_str(g->arena, &n->out[k]->type),
                type_str(g->arena, &own[k]));
}

/* Updates the metadata of the logits. */
static void type_output(struct graph *g, const struct value *v, const struct dim *symbol, const struct dim *taken)
{
    struct placement place;
    struct type type;
    if (!g->rank_meta || !rank_meta_value(g, RANK_OUTPUT, v->name, &type, &place))
        return;
    for (int d = 0; d < type.rank; d++)
        if (dim_rewrite(g->alg, type.dim[d]) == symbol)
            type.dim[d] = taken;
    rank_meta_set_value(g, RANK_OUTPUT, v->name, &type, place);
}

void last_position_only(struct arena *a, struct stage *s)
{
    struct graph *g = s->graph;
    const struct dim *rows, *positions;
    struct position_tail tail;
    if (s->logits < 0 || !token_symbols(s, &rows, &positions) || !position_tail_find(a, g, s->logits, positions, rows, &tail))
        return;
    s->role[g->inputs.n] = ROLE_LAST;
    const struct dim *count = dim_sym(g->alg, "last_positions", 1);
    struct value *index = add_input(g, rows, count);
    struct node **taken = NEWN(a, struct node *, tail.cuts.n);
    for (int i = 0; i < tail.cuts.n; i++) {
        taken[i] = take_position(g, &tail.cuts.at[i], index, rows);
        read_taken(&tail, tail.cuts.at[i].value, taken[i]->out[0]);
    }
    graph_insert_before_use(g, tail.cuts.n, taken);
    for (int i = 0; i < tail.nodes.n; i++)
        type_results(g, tail.nodes.at[i], positions, count);
    type_output(g, g->outputs.at[s->logits], positions, count);
    explain("%s: %d nodes before '%s' compute the last position only", s->path, tail.nodes.n, g->outputs.at[s->logits]->name);
}
