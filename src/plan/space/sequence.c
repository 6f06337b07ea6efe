/* sequence: finds, without names, the dimensions that --sp splits. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <string.h>

/* ---- which qualify -------------------------------------------------------------------------------------------------------- */

/* A class of dimensions that are products of factors, one of them the class `factor`. */
struct flattening {
    int rows, factor;
    const struct dim *outer, *inner;
};
struct flattenings {
    VEC(struct flattening) list;
};

static bool dimension_qualifies(const struct space *s, const struct value *v, int d)
{
    const struct dim *size = v->type.dim[d];
    const char *only = s->options->sp_symbol;
    return dim_has_role(s->roles, v, d, DIM_SEQUENCE) &&
        (!only || (size->kind == DIM_SYM ? strcmp(only, size->name) == 0 : dim_uses(size, only)));
}

static void split_sequences(struct space *s, int *up, struct sequence_rows *rows)
{
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        for (int d = 0; d < v->type.rank; d++)
            if (dimension_qualifies(s, v, d))
                rows->split[dim_class_of(up, i * MAX_RANK + d)] = shares_split(s, v->type.dim[d]);
    }
}

static void note_flattened(struct space *s, int node, const struct rule_dim *rd, int rows_class, struct flattenings *out)
{
    const struct rule_part *p = &rd->part[0];
    for (int k = 0; rd->n == 1 && p->n > 1 && k < p->n; k++) {
        int factor = dim_class_of_factor(s->roles, node, p->factor[k]);
        if (factor >= 0)
            VEC_PUSH(s->arena, &out->list,
                     ((struct flattening){rows_class, factor, rule_sizes(s->g, s->rule[node], p->factor, 0, k),
                                          rule_sizes(s->g, s->rule[node], p->factor, k + 1, p->n)}));
    }
}

static struct flattenings find_flattened(struct space *s, int *up)
{
    struct flattenings out = {0};
    for (int node = 0; node < s->g->nodes.n; node++)
        for (struct dim_walk w = dim_walk(node); dim_next(s->roles, &w);)
            note_flattened(s, node, w.rule, dim_class_of(up, w.at), &out);
    return out;
}

/* Gives flattened rows the split of the sequence inside them. */
static void split_flattened(struct space *s, const struct flattenings *all, struct sequence_rows *rows)
{
    for (bool changed = true; changed;) {
        changed = false;
        EACH (const struct flattening, f, all->list) {
            if (!rows->split[f->factor] || rows->split[f->rows])
                continue;
            rows->split[f->rows] = split_scale(s->g->alg, rows->split[f->factor], f->outer, f->inner);
            changed |= rows->split[f->rows] != NULL;
        }
    }
}

/* ---- marking ---------------------------------------------------------------------------------------------------------------- */

/* Whether dimension d of the result is a row: it comes from an activation and from no weight. */
static bool is_row(const struct space *s, int node, int d)
{
    const struct node *n = s->g->nodes.at[node];
    const struct rule *r = s->rule[node];
    int f = rule_factor_at(&r->out[0], d);
    bool activation = false;
    for (int i = 0; f >= 0 && i < r->nin; i++)
        for (int k = 0; n->in[i] && k < n->in[i]->type.rank; k++)
            if (rule_factor_at(&r->in[i], k) == f) {
                if (s->weight[n->in[i]->id])
                    return false;
                activation = true;
            }
    return activation;
}

static bool leaves_partial(const struct space *s, int node)
{
    for (int k = 0; k < s->strategies[node].list.n; k++)
        if (s->strategies[node].list.at[k]->out[0].kind == PLACE_P)
            return true;
    return false;
}

static bool seed_rows(struct space *s, int node, int *up, struct sequence_rows *rows)
{
    const struct value *v = s->g->nodes.at[node]->out[0];
    bool found = false;
    for (int d = 0; v && d < v->type.rank; d++) {
        int class = dim_class_of(up, v->id * MAX_RANK + d);
        if (!is_row(s, node, d) || !rows->split[class])
            continue;
        space_add(s, v, d, (struct candidate){rows->split[class], true, "--sp at", node});
        found = rows->on[class] = true;
    }
    return found;
}

/* Spreads splits between flattened rows and the sequences inside them, both ways. */
static void spread_on(const struct flattenings *all, struct sequence_rows *rows)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < all->list.n; i++) {
            int a = all->list.at[i].rows, b = all->list.at[i].factor;
            if (!rows->split[a] || !rows->split[b] || rows->on[a] == rows->on[b])
                continue;
            changed = rows->on[a] = rows->on[b] = true;
        }
    }
}

/* Marks values; attention scores are marked like their queries. */
static void mark_values(struct space *s, int *up, const struct sequence_rows *rows)
{
    for (int i = 0; i < s->g->values.n; i++)
        for (int d = 0; d < s->g->values.at[i]->type.rank; d++) {
            int class = dim_class_of(up, i * MAX_RANK + d);
            require(!rows->on[class] || rows->split[class]);
            if (rows->on[class] &&
                (s->sequence.place[i].kind != PLACE_S || dim_has_role(s->roles, s->g->values.at[i], s->sequence.place[i].dim, DIM_KV)))
                s->sequence.place[i] = placement_split(d, rows->split[class]);
        }
}

/* For the report: each size once, after its image axis; NULL: none. */
struct sequence_size {
    const char *axis;
    const struct dim *size;
};
struct sequence_sizes {
    VEC(struct sequence_size) list;
};

/* The image axis of dimension d, over which windows of one, two or three dimensions slide. NULL for a symbol, whose name tells enough. */
static const char *axis_of(const struct space *s, const struct value *v, int d)
{
    static const char *const axis[3][3] = {{"length"}, {"height", "width"}, {"depth", "height", "width"}};
    int windows = v->type.rank - 2, at = d - 2;
    bool slides = s->sequence.slides[dim_class_of(s->roles->class, v->id * MAX_RANK + d)];
    return slides && dim_is_int(v->type.dim[d], NULL) && windows > 0 && windows <= 3 && at >= 0 ? axis[windows - 1][at] : NULL;
}

static void add_size(struct space *s, struct sequence_sizes *sizes, const struct value *v, int d)
{
    struct sequence_size new = {axis_of(s, v, d), v->type.dim[d]};
    for (int k = 0; k < sizes->list.n; k++)
        if (sizes->list.at[k].size == new.size && sizes->list.at[k].axis == new.axis)
            return;
    VEC_PUSH(s->arena, &sizes->list, new);
}

/* "sequence_length", "height 112, 56". */
static const char *sizes_text(struct space *s, const struct sequence_sizes *sizes)
{
    const char *text = NULL, *last = NULL;
    for (int k = 0; k < sizes->list.n; k++) {
        const char *axis = sizes->list.at[k].axis;
        bool named = axis && axis != last;
        text = arena_printf(s->arena, "%s%s%s%s%s", k ? text : "", k ? ", " : "", named ? axis : "", named ? " " : "",
                            dim_str(s->arena, sizes->list.at[k].size));
        last = axis;
    }
    return text;
}

static const char *name_sequences(struct space *s, int *up, const struct sequence_rows *rows)
{
    struct sequence_sizes sizes = {0};
    for (int i = 0; i < s->g->values.n; i++)
        for (int d = 0; d < s->g->values.at[i]->type.rank; d++) {
            int class = dim_class_of(up, i * MAX_RANK + d);
            if (rows->on[class] && (rows->slides[class] || dimension_qualifies(s, s->g->values.at[i], d)))
                add_size(s, &sizes, s->g->values.at[i], d);
        }
    return sizes_text(s, &sizes);
}

static _Noreturn void refuse_sequence(const struct space *s)
{
    const char *model = graph_file(s->g), *only = s->options->sp_symbol;
    VEC(const char *) contracted = {NULL, 0, 0};
    for (int i = 0; i < s->roles->symbols.n; i++)
        if (s->roles->symbols.at[i].contracted)
            VEC_PUSH(s->arena, &contracted, s->roles->symbols.at[i].name);
    const struct symbol_role *named = only ? dim_symbol_role(s->roles, only) : NULL;
    if (only && contracted.n > 0 && !(named && named->contracted))
        fail("%s: --sp=%s: no dimension qualifies by this name; the nearest KV dimension is '%s'", model, only,
             contracted.at[did_you_mean(only, contracted.n, contracted.at)]);
    fail("%s: --sp%s%s: no dimension qualifies as a sequence: none is both a row of a product with a weight and a KV dimension%s", model,
         only ? "=" : "", only ? only : "", sequence_has_windows(s) ? "; --sp=auto splits images and sounds" : "");
}

void sequence_seed(struct space *s)
{
    int *up = s->roles->class, n = s->g->values.n * MAX_RANK + 1;
    struct sequence_rows rows = {NEWN(s->arena, const struct split *, n), NEWN(s->arena, bool, n), NEWN(s->arena, bool, n)};
    struct flattenings flattened = find_flattened(s, up);
    bool found = false;
    split_sequences(s, up, &rows);
    split_flattened(s, &flattened, &rows);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i] && (s->g->nodes.at[i]->op->flags & OP_PRODUCT) && dim_node_reads_weight(s->roles, s->g->nodes.at[i]) &&
            leaves_partial(s, i))
            found |= seed_rows(s, i, up, &rows);
    if (!found && s->options->sp == SP_ON)
        refuse_sequence(s);
    if (s->options->sp == SP_AUTO && !s->options->sp_symbol)
        sequence_seed_windows(s, up, &rows);
    for (int i = 0; i < s->g->nodes.n; i++)
        s->sequence.passes[i] = s->options->sp == SP_AUTO;
    sequence_pass_routers(s);
    spread_on(&flattened, &rows);
    mark_values(s, up, &rows);
    s->sequence.slides = rows.slides;
    s->plan->sequence = name_sequences(s, up, &rows);
}

/* ---- what was chosen -------------------------------------------------------------------------------------------------------- */

/* An operand or result of the node that has a sequence; with a strategy, one whose sequence it splits. NULL: none. */
static const struct value *with_sequence(const struct space *s, const struct node *n, const struct strategy *st)
{
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? n->nout : n->nin); i++) {
            const struct value *v = dim_node_value(n, side, i);
            struct placement p = v ? s->sequence.place[v->id] : placement_replicated;
            if (p.kind == PLACE_S && (!st || placement_eq(side ? st->out[i] : st->in[i], p)))
                return v;
        }
    return NULL;
}

void sequence_note_chosen(struct space *s)
{
    int all[2] = {0}, split[2] = {0};
    struct sequence_sizes sizes = {0};
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        bool product = n->op && (n->op->flags & OP_PRODUCT);
        const struct value *chosen = with_sequence(s, n, n->strategy);
        all[product] += with_sequence(s, n, NULL) != NULL;
        split[product] += chosen != NULL;
        if (chosen)
            add_size(s, &sizes, chosen, s->sequence.place[chosen->id].dim);
    }
    require(split[0] <= all[0] && split[1] <= all[1]);
    s->plan->sequence = !s->plan->sequence ? "nowhere, there is none"
        : !sizes.list.n                    ? "nowhere, it saves no time"
                        : arena_printf(s->arena, "%s, at %d of %d products and %d of %d other nodes that have one", sizes_text(s, &sizes),
                                       split[1], all[1], split[0], all[0]);
}
