/* check: the self-check of a plug-in's op. tests/selfcheck does the same for the rows of schemas/ops.def, with more kinds of sizes. */
#include "op/op.h"
#include "op/plugin/trial.h"

#include <math.h>
#include <string.h>

/* ---- what the rule claims ---------------------------------------------------------------------------------------------------- */

static _Noreturn void refuse(const struct plugin_trial *t, const char *why)
{
    if (t->infinite)
        fail("%s: its kernel makes NaN or infinity of operands between -1 and 1, so the rule '%s' can't be checked: %s", t->where,
             t->p->given.rule, why);
    fail("%s: the rule '%s' is wrong: %s", t->where, t->p->given.rule, why);
}

static void try_factor(struct plugin_trial *t, int f)
{
    const struct split *split[TRIAL_SPLITS];
    struct rule *r = t->rule;
    int n = trial_splits(t->arena, t->graph->alg, r->factor[f].size, split);
    for (int i = 0; i < n; i++) {
        struct placement in[PLUGIN_OPERANDS], out[PLUGIN_RESULTS];
        struct assignment a = {.factor = NEWN(t->arena, const struct split *, r->nfactor)};
        a.factor[f] = split[i];
        if (!rule_project(t->graph, r, split[i]->ranks, &a, in, out, NULL))
            continue;
        const char *why = plugin_trial_wrong(t, split[i]->ranks, in, out, NULL);
        if (why)
            refuse(t, arena_printf(t->arena, "with %s split as %s, %s", r->factor[f].name, split_str(t->arena, split[i]), why));
    }
}

/* Dense random addends whose reduction is x. */
static struct tensor *new_addends(struct plugin_trial *t, const struct tensor *x, const struct type *type, enum redop op, int ranks)
{
    struct tensor *all = NEWN(t->arena, struct tensor, ranks);
    for (int r = 0; r < ranks; r++)
        all[r] = plugin_trial_tensor(t, type);
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        int owner = (int)(fabs(plugin_trial_draw(t)) * ranks) % ranks;
        double rest = plugin_trial_get(x, i);
        for (int r = 0; r < ranks; r++) {
            double k = op == RED_SUM ? plugin_trial_draw(t)
                : op == RED_PROD     ? 1 + plugin_trial_draw(t) / 2
                                     : plugin_trial_get(x, i) + (op == RED_MAX ? -1 : 1) * fabs(plugin_trial_draw(t));
            if (r == owner)
                continue;
            plugin_trial_set(&all[r], i, k);
            rest = op == RED_SUM ? rest - plugin_trial_get(&all[r], i) : op == RED_PROD ? rest / plugin_trial_get(&all[r], i) : rest;
        }
        plugin_trial_set(&all[owner], i, rest);
    }
    return all;
}

static void try_pass(struct plugin_trial *t, const struct rule_pass *pass)
{
    enum { RANKS = 3 };
    struct placement in[PLUGIN_OPERANDS], out[PLUGIN_RESULTS];
    struct tensor *addends[PLUGIN_OPERANDS] = {NULL};
    for (int i = 0; i < t->node->nin; i++) {
        bool partial = pass->operands >> i & 1;
        if (partial && t->in[i].dtype != DT_F32)
            return;
        in[i] = partial ? placement_partial(pass->from) : placement_replicated;
        if (partial)
            addends[i] = new_addends(t, &t->in[i], &t->node->in[i]->type, pass->from, RANKS);
    }
    for (int i = 0; i < t->node->nout; i++)
        out[i] = placement_partial(pass->to);
    const char *why = plugin_trial_wrong(t, RANKS, in, out, addends);
    if (why)
        refuse(t, arena_printf(t->arena, "it does not pass %s: %s", redop_name(pass->from), why));
}

/* One factor, 1, or a factor of units that are never split: the dimensions that trials cover. */
static bool is_plain(const struct rule *r, const struct rule_dim *d)
{
    const struct rule_part *p = d->part;
    return !d->window && (d->n == 0 || (d->n == 1 && (p->n <= 1 || (p->n == 2 && r->factor[p->factor[1]].flags & FACTOR_REPLICATED))));
}

static void check_form(const struct plugin_trial *t)
{
    const struct rule *r = t->rule;
    bool plain = r->ngroup == 0 && r->nsize == 0 && r->query_outer < 0;
    for (int f = 0; f < r->nfactor; f++)
        plain = plain && !(r->factor[f].flags & FACTOR_LOWERED);
    for (int i = 0; i < r->nin + r->nout; i++) {
        const struct rule_operand *o = i < r->nin ? &r->in[i] : &r->out[i - r->nin];
        for (int d = 0; d < o->rank; d++)
            plain = plain && is_plain(r, &o->dim[d]);
    }
    if (!plain)
        fail(
            "%s: the rule '%s': a dimension of a plug-in's rule is one factor, 1, or (n !p) for units of p, without windows, parts, groups "
            "and lowerings",
            t->where, t->p->given.rule);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------------- */

static bool has_dotted(const struct plugin_signature *s)
{
    for (int i = 0; i < s->nin; i++)
        for (int d = 0; d < s->in[i].n; d++)
            if (s->in[i].dim[d].dotted)
                return true;
    return false;
}

/* Each name gets a different size; round shifts them. */
static int64_t size_of(struct plugin_trial *t, const struct dim *size, int round)
{
    static const int64_t sizes[] = {8, 5, 6, 7, 9, 10, 4};
    if (size->kind == DIM_INT)
        return size->k;
    const int64_t *known = bindings_get(&t->bind, size->name);
    if (!known)
        bindings_set(t->arena, &t->bind, size->name, sizes[(t->bind.list.n + round) % (int)(sizeof sizes / sizeof *sizes)]);
    return *bindings_get(&t->bind, size->name);
}

static void set_types(struct plugin_trial *t, int round, int dotted, struct type *type)
{
    static const int64_t leading[] = {4, 3, 2};
    const struct plugin_signature *s = &t->p->signature;
    for (int i = 0; i < s->nin; i++) {
        type[i] = (struct type){.dtype = s->in[i].dtype};
        for (int k = 0; k < s->in[i].n; k++) {
            const struct plugin_dim *x = &s->in[i].dim[k];
            for (int j = 0; j < (x->dotted ? dotted : 1); j++) {
                if (type[i].rank == MAX_RANK)
                    return;
                type[i].dim[type[i].rank++] = dim_int(t->graph->alg, x->dotted ? leading[j] : x->times * size_of(t, x->size, round));
            }
        }
    }
}

static void check_round(const struct plugin_op *p, const struct node *like, const char *where, int round, int dotted)
{
    struct arena *a = arena_new();
    struct plugin_trial t = {.arena = a, .p = p, .like = like, .where = where, .env = kenv_new(1, false), .random = (uint64_t)round + 1};
    struct type type[PLUGIN_OPERANDS];
    struct rule_pass pass[MOST_PASSES];
    t.graph = plugin_trial_graph(&t, alg_new(a));
    set_types(&t, round, dotted, type);
    plugin_trial_start(&t, type);
    t.rule = p->op.rule ? rule_of(t.graph, t.node) : NULL;
    if (t.rule)
        check_form(&t);
    for (int f = 0; t.rule && f < t.rule->nfactor; f++)
        if (rule_factor_splits(&t.rule->factor[f]))
            try_factor(&t, f);
    int passes = t.rule ? rule_passes(t.rule, pass) : 0;
    for (int i = 0; i < passes; i++)
        try_pass(&t, &pass[i]);
    kenv_free(t.env);
    arena_free(a);
}

void plugin_check(const struct plugin_op *p, const struct node *like, const char *where)
{
    for (int round = 0; round < 3; round++)
        check_round(p, like, where, round, has_dotted(&p->signature) ? (round + 1) % 3 : 0);
}

/* ---- the nodes of a model ---------------------------------------------------------------------------------------------------- */

static bool same_attributes(const struct node *a, const struct node *b)
{
    for (int i = 0; i < a->nattr; i++) {
        const struct attr *x = &a->attr[i], *y = &b->attr[i];
        if (x->i != y->i || memcmp(&x->f, &y->f, sizeof x->f) != 0 || strcmp(x->s ? x->s : "", y->s ? y->s : "") != 0)
            return false;
    }
    return true;
}

static bool has_defaults(const struct node *n)
{
    for (int i = 0; i < n->nattr; i++) {
        const struct attr *is = &n->attr[i], *usual = &n->op->attr[i].value;
        if (is->i != usual->i || memcmp(&is->f, &usual->f, sizeof is->f) != 0 || strcmp(is->s ? is->s : "", usual->s ? usual->s : "") != 0)
            return false;
    }
    return true;
}

struct checked {
    VEC(const struct node *) list;
};

static void check_nodes(struct arena *a, const struct graph *g, struct checked *done)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; n->op && k < node_bodies(n); k++)
            check_nodes(a, node_body(n, k)->graph, done);
        bool known = !n->op || !n->op->plugin || has_defaults(n);
        for (int k = 0; !known && k < done->list.n; k++)
            known = done->list.at[k]->op == n->op && same_attributes(done->list.at[k], n);
        if (known)
            continue;
        plugin_check(plugin_op_of(n), n, arena_printf(a, "%s: with the attributes of %s", n->op->plugin, node_where(g, n)));
        VEC_PUSH(a, &done->list, n);
    }
}

void plugin_check_nodes(const struct graph *g)
{
    struct arena *a = arena_new();
    struct checked done = {{0}};
    check_nodes(a, g, &done);
    arena_free(a);
}
