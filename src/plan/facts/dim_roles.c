/* dim_roles: the roles of dimensions and symbols of a canonical graph, found once for all of planning by rules and dataflow, never by
 * names.
 *
 *     KV           a dimension of keys, values, scores or masks that a product of activations contracts, or that becomes such a dimension
 * on the way there. Queries have none. sequence     what attention mixes: queries, keys and scores alike. Its symbol occurs in a contracted
 * dimension (the key length), or, where its size is no symbol, its class is contracted between two activations. The batch never is. head
 * size    what one head holds: an inner factor of features that are merged from heads, or split into them.
 *
 * Symbols: the symbol of a state pair's growing dimension is the past. A contracted symbol is a sequence if it is also a row of a product;
 * if not, and if it occurs in input-only state, it is a context (the prompt that an encoder has read).
 *
 * Related files: kv_origin.c finds the tensors that attention reads as keys and values, not dimensions. op/analysis/batch_independence.c
 * proves for tpc-run that rows along a symbol may run separately; planning needs no such proof. Rules mark head dimensions:
 * FACTOR_HEADS. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"

#include <string.h>

/* ---- nodes ------------------------------------------------------------------------------------------------------------------ */

bool dim_node_reads_weight(const struct dim_roles *all, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && all->weight[n->in[i]->id])
            return true;
    return false;
}

bool dim_node_multiplies_activations(const struct dim_roles *all, const struct node *n)
{
    int count = (n->op->flags & OP_APPENDS) ? 2 : 0;
    for (int i = 0; (n->op->flags & OP_PRODUCT) && i < n->nin && count < 2; i++)
        count += n->in[i] && !all->weight[n->in[i]->id];
    return (n->op->flags & OP_PRODUCT) && count > 1;
}

bool dim_node_sums_nothing(const struct dim_roles *all, int node)
{
    const struct rule *r = all->rule[node];
    for (int f = 0; r && f < r->nfactor; f++)
        if ((r->factor[f].flags & FACTOR_CONTRACTED) && !dim_equals(r->factor[f].size, 1))
            return false;
    return r && (all->g->nodes.at[node]->op->flags & OP_PRODUCT) != 0;
}

/* ---- KV dimensions ---------------------------------------------------------------------------------------------------------- */

static void set_role(struct dim_roles *all, const struct value *v, int d, enum dim_role role)
{
    require(d >= 0 && d < v->type.rank && v->id < all->g->values.n);
    all->of[v->id][d] |= (unsigned char)role;
}

bool dim_has_role(const struct dim_roles *all, const struct value *v, int d, enum dim_role role)
{
    require(d >= 0 && d < MAX_RANK);
    return all->of[v->id][d] & role;
}

/* Weights end the walk: beyond them are other rows. */
bool dim_factor_is_kv(const struct dim_roles *all, int node, int f)
{
    const struct node *n = all->g->nodes.at[node];
    const struct rule *r = all->rule[node];
    if (dim_node_multiplies_activations(all, n) && (r->factor[f].flags & FACTOR_CONTRACTED))
        return true;
    for (int i = 0; i < r->nout; i++)
        for (int d = 0; n->out[i] && d < n->out[i]->type.rank; d++)
            if (rule_factor_at(&r->out[i], d) == f && dim_has_role(all, n->out[i], d, DIM_KV))
                return true;
    return false;
}

static void mark_kv_operands(struct dim_roles *all, int node)
{
    const struct node *n = all->g->nodes.at[node];
    const struct rule *r = all->rule[node];
    for (int i = 0; i < r->nin; i++)
        for (int d = 0; n->in[i] && d < n->in[i]->type.rank; d++) {
            int f = rule_factor_at(&r->in[i], d);
            if (f >= 0 && dim_factor_is_kv(all, node, f))
                set_role(all, n->in[i], d, DIM_KV);
        }
}

static void mark_kv(struct dim_roles *all)
{
    for (int i = all->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = all->g->nodes.at[i];
        if (all->rule[i] && (!(n->op->flags & OP_PRODUCT) || dim_node_multiplies_activations(all, n)))
            mark_kv_operands(all, i);
    }
}

/* ---- head sizes ------------------------------------------------------------------------------------------------------------- */

static bool *class_marks(const struct dim_roles *all)
{
    return NEWN(all->arena, bool, all->g->values.n *MAX_RANK + 1);
}

/* Marks dimensions of weights: features, not rows. */
static bool *mark_features(const struct dim_roles *all)
{
    bool *mark = class_marks(all);
    for (int i = 0; i < all->g->values.n; i++)
        for (int d = 0; all->weight[i] && d < all->g->values.at[i]->type.rank; d++)
            mark[dim_class_of(all->class, i * MAX_RANK + d)] = true;
    return mark;
}

/* Marks a factor inside a head factor, as d in (h d), as a head size wherever it forms a dimension alone. */
static void mark_inside(const struct dim_roles *all, int node, const struct rule_part *p, bool *mark)
{
    bool inside = false;
    for (int k = 0; k < p->n; k++) {
        bool head = (all->rule[node]->factor[p->factor[k]].flags & FACTOR_HEADS) != 0;
        if (inside && !head)
            dim_class_mark_factor(all, node, p->factor[k], mark);
        inside |= head;
    }
}

/* Unmarks what contains heads, as each half in (2 (h d)): d is contracted there. The pairs of a rotary stay marked. */
static void unmark_merged(const struct dim_roles *all, const struct dim_walk *w, const bool *contracted, bool *mark)
{
    const struct rule *r = all->rule[w->node];
    const struct rule_part *p = &w->rule->part[0];
    int inner = w->rule->n == 1 && p->n > 1 ? dim_class_of_factor(all, w->node, p->factor[p->n - 1]) : -1;
    if (inner >= 0 && contracted[inner] && (r->factor[p->factor[p->n - 2]].flags & FACTOR_HEADS))
        mark[dim_class_of(all->class, w->at)] = false;
}

/* Rows may be merged like features: (batch head), (batch sequence). The factors inside these are no head sizes. */
static bool *mark_head_sizes(const struct dim_roles *all, const bool *contracted)
{
    bool *mark = class_marks(all), *features = mark_features(all);
    for (int node = 0; node < all->g->nodes.n; node++)
        for (struct dim_walk w = dim_walk(node); dim_next(all, &w);)
            for (int p = 0; features[dim_class_of(all->class, w.at)] && p < w.rule->n; p++)
                mark_inside(all, node, &w.rule->part[p], mark);
    for (int node = 0; node < all->g->nodes.n; node++)
        for (struct dim_walk w = dim_walk(node); dim_next(all, &w);)
            unmark_merged(all, &w, contracted, mark);
    dim_class_spread(all, mark);
    return mark;
}

/* ---- what is contracted between activations ---------------------------------------------------------------------------------- */

static bool contracts(const struct dim_roles *all, int node, int f)
{
    return dim_node_multiplies_activations(all, all->g->nodes.at[node]) && (all->rule[node]->factor[f].flags & FACTOR_CONTRACTED);
}

static bool *mark_contracted(const struct dim_roles *all)
{
    bool *mark = class_marks(all);
    for (int node = 0; node < all->g->nodes.n; node++)
        for (int f = 0; all->rule[node] && f < all->rule[node]->nfactor; f++)
            if (contracts(all, node, f))
                dim_class_mark_factor(all, node, f, mark);
    return mark;
}

static bool is_sequence(const struct dim_roles *all, const struct value *v, int d, const bool *contracted)
{
    const struct dim *size = v->type.dim[d];
    const struct symbol_role *symbol = size->kind == DIM_SYM ? dim_symbol_role(all, size->name) : NULL;
    if (size->kind == DIM_SYM)
        return symbol && symbol->contracted;
    return !(size->kind == DIM_INT && size->k <= 1) && contracted[dim_class_of(all->class, v->id * MAX_RANK + d)];
}

/* Marks sequences, also through the classes of new keys after the past ones. */
static void mark_sequences(struct dim_roles *all, bool *contracted)
{
    dim_class_spread(all, contracted);
    for (int i = 0; i < all->g->values.n; i++)
        for (int d = 0; d < all->g->values.at[i]->type.rank; d++)
            if (is_sequence(all, all->g->values.at[i], d, contracted))
                set_role(all, all->g->values.at[i], d, DIM_SEQUENCE);
}

/* ---- symbols ----------------------------------------------------------------------------------------------------------------- */

struct symbol_role *dim_symbol_role(const struct dim_roles *all, const char *name)
{
    int at = name_index_find(&all->symbol_index, name);
    return at >= 0 ? &all->symbols.at[at] : NULL;
}

static void add_symbol(void *to, const struct dim *d)
{
    struct dim_roles *all = to;
    if (dim_symbol_role(all, d->name))
        return;
    name_index_put(all->arena, &all->symbol_index, d->name, all->symbols.n);
    VEC_PUSH(all->arena, &all->symbols, ((struct symbol_role){.name = d->name, .lo = d->lo, .usual = d->usual}));
}

static void add_sizes(struct dim_roles *all, const struct value *v)
{
    for (int d = 0; d < v->type.rank; d++)
        dim_each_symbol(v->type.dim[d], add_symbol, all);
}

static void add_symbols(struct dim_roles *all)
{
    const struct equation *eq;
    for (int i = 0; i < all->g->inputs.n; i++)
        add_sizes(all, all->g->inputs.at[i]);
    for (int i = 0; i < all->symbols.n; i++)
        all->symbols.at[i].of_input = true;
    for (int i = 0; i < all->g->values.n; i++)
        add_sizes(all, all->g->values.at[i]);
    int n = alg_equations(all->g->alg, &eq);
    for (int i = 0; i < n; i++) {
        dim_each_symbol(eq[i].left, add_symbol, all);
        dim_each_symbol(eq[i].right, add_symbol, all);
    }
}

static void note_contracted(void *of, const struct dim *symbol)
{
    struct symbol_role *s = dim_symbol_role(of, symbol->name);
    if (s)
        s->contracted = true;
}

static void note_row(void *of, const struct dim *symbol)
{
    struct symbol_role *s = dim_symbol_role(of, symbol->name);
    if (s)
        s->row = true;
}

/* Marks the symbols of a node. The rows of a packed attention are also its new keys. */
static void mark_symbols(struct dim_roles *all, int node)
{
    const struct rule *r = all->rule[node];
    for (int f = 0; f < r->nfactor; f++) {
        if (contracts(all, node, f))
            dim_each_symbol(r->factor[f].size, note_contracted, all);
        if (rule_has_factor(&r->in[0], f) && r->nout > 0 && rule_has_factor(&r->out[0], f))
            dim_each_symbol(r->factor[f].size, note_row, all);
    }
}

static void note_steps(struct dim_roles *all, const struct type *t, int d)
{
    struct symbol_role *s = NULL;
    for (int i = 0; i < all->symbols.n && !s; i++)
        s = dim_uses(t->dim[d], all->symbols.at[i].name) ? &all->symbols.at[i] : NULL;
    if (!s || !s->of_input)
        return;
    s->side |= t->rank > 3;
    s->steps |= t->rank <= 3;
    s->samples |= t->rank == 3 && d == 2 && dim_equals(t->dim[1], 1);
}

/* Whether windows slide along dimension d of operand 0, or it is a dimension without a weight that is never split. */
static bool is_walked(const struct rule *r, int d)
{
    int f = rule_lone_factor(&r->in[0].dim[d]);
    if (d < 2 || r->in[0].dim[d].window)
        return d >= 2;
    return f >= 0 && (r->factor[f].flags & FACTOR_REPLICATED) && !rule_has_factor(&r->in[1], f);
}

/* Marks the dimensions along which a recurrent node steps or windows slide. */
static void mark_steps(struct dim_roles *all, int node)
{
    const struct node *n = all->g->nodes.at[node];
    const struct rule *r = all->rule[node];
    bool recurs = n->op->flags & OP_RECURS;
    for (int d = 0; d < r->in[0].rank; d++) {
        bool walked = recurs ? d == attr_int(n, "layout") : is_walked(r, d);
        if (walked && !dim_is_int(n->in[0]->type.dim[d], NULL))
            note_steps(all, &n->in[0]->type, d);
    }
}

/* A picture has two sides of unknown size. If one side is known, the other one counts steps. */
static void pair_sides(struct dim_roles *all)
{
    for (int i = 0; i < all->g->inputs.n; i++) {
        const struct type *t = &all->g->inputs.at[i]->type;
        struct symbol_role *side[MAX_RANK];
        int n = 0;
        for (int d = 0; d < t->rank; d++) {
            struct symbol_role *s = t->dim[d]->kind == DIM_SYM ? dim_symbol_role(all, t->dim[d]->name) : NULL;
            if (s && d == 0)
                s->leading = true;
            if (s && s->side)
                side[n++] = s;
        }
        for (int k = 0; k < n && n < 2; k++)
            side[k]->side = !(side[k]->steps = true);
    }
}

static void mark_outputs(struct dim_roles *all)
{
    for (int i = 0; i < all->symbols.n; i++)
        for (int k = 0; all->symbols.at[i].side && k < all->g->outputs.n; k++)
            for (int d = 0; d < all->g->outputs.at[k]->type.rank; d++)
                all->symbols.at[i].of_output |= dim_uses(all->g->outputs.at[k]->type.dim[d], all->symbols.at[i].name);
}

static bool in_input_only_state(const struct graph *g, const char *name)
{
    EACH (const struct state, s, g->states) {
        for (int d = 0; s->past && s->dim < 0 && d < s->past->type.rank; d++)
            if (dim_uses(dim_rewrite(g->alg, s->past->type.dim[d]), name))
                return true;
    }
    return false;
}

static bool is_past(const struct graph *g, const char *name)
{
    EACH (const struct state, s, g->states) {
        const struct dim *size = s->past && s->dim >= 0 ? dim_rewrite(g->alg, s->past->type.dim[s->dim]) : NULL;
        if (size && size->kind == DIM_SYM && strcmp(size->name, name) == 0)
            return true;
    }
    return false;
}

static enum symbol_kind symbol_kind_of(const struct graph *g, const struct symbol_role *s)
{
    return is_past(g, s->name)                             ? SYMBOL_PAST
        : s->contracted && s->row                          ? SYMBOL_SEQUENCE
        : s->contracted && in_input_only_state(g, s->name) ? SYMBOL_CONTEXT
        : s->side                                          ? SYMBOL_SIDE
        : s->samples                                       ? SYMBOL_SAMPLES
        : s->steps                                         ? SYMBOL_STEPS
                                                           : SYMBOL_OTHER;
}

static void find_symbols(struct dim_roles *all)
{
    add_symbols(all);
    for (int i = 0; i < all->g->nodes.n; i++)
        if (all->rule[i] && (all->g->nodes.at[i]->op->flags & OP_PRODUCT))
            mark_symbols(all, i);
    for (int i = 0; i < all->g->nodes.n; i++)
        if (all->rule[i] && (all->g->nodes.at[i]->op->flags & OP_PRODUCT) && all->g->nodes.at[i]->in[0])
            mark_steps(all, i);
    pair_sides(all);
    mark_outputs(all);
    for (int i = 0; i < all->symbols.n; i++)
        all->symbols.at[i].kind = symbol_kind_of(all->g, &all->symbols.at[i]);
}

/* ---- all --------------------------------------------------------------------------------------------------------------------- */

/* Uses the rules of nodes whose ops have one of these flags; 0: of all nodes. */
static struct dim_roles *roles_by(struct arena *a, struct graph *g, unsigned flags)
{
    struct dim_roles *all = NEW(a, struct dim_roles);
    *all = (struct dim_roles){.arena = a, .g = g, .rule = NEWN(a, struct rule *, g->nodes.n + 1)};
    for (int i = 0; i < g->nodes.n; i++)
        if (!flags || (g->nodes.at[i]->op && g->nodes.at[i]->op->flags & flags))
            all->rule[i] = rule_of(g, g->nodes.at[i]);
    all->weight = weight_marks(a, g, all->rule);
    find_symbols(all);
    return all;
}

struct dim_roles *dim_symbol_roles(struct arena *a, struct graph *g)
{
    return roles_by(a, g, OP_PRODUCT);
}

struct dim_roles *dim_roles_of(struct arena *a, struct graph *g)
{
    struct dim_roles *all = roles_by(a, g, 0);
    all->of = arena_array(a, (size_t)g->values.n + 1, sizeof *all->of);
    dim_class_find_all(all);
    bool *contracted = mark_contracted(all);
    all->head_size = mark_head_sizes(all, contracted);
    mark_kv(all);
    mark_sequences(all, contracted);
    return all;
}
