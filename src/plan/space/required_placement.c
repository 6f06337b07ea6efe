/* required_placement: placements that the plan file requires of values. A graph input, a graph output or a weight has the required
 * placement at its end of the graph. Any other value is resharded to it before anything reads it (a reduction of partial values, say). So
 * is a graph output that has a requirement of required_add_read. */
#include "plan/space/space.h"

#include <stdlib.h>
#include <string.h>

bool required_fits(const struct required_placement *w, struct placement p)
{
    return w->kind == p.kind && (w->kind != PLACE_S || (w->dim == p.dim && (!w->split || w->split == p.split))) &&
        (w->kind != PLACE_P || w->op == RED_NONE || w->op == p.op);
}

static bool all_fit(const struct required_placements *all, struct placement p)
{
    for (int i = 0; i < all->list.n; i++)
        if (!required_fits(&all->list.at[i], p))
            return false;
    return true;
}

bool space_allows(const struct space *s, const struct value *v, struct placement p)
{
    return all_fit(&s->limits.required[v->id], p);
}

static void add_place(struct space *s, struct places *out, struct placement p)
{
    for (int i = 0; i < out->list.n; i++)
        if (placement_eq(out->list.at[i], p))
            return;
    VEC_PUSH(s->arena, &out->list, p);
}

static void add_splits(struct space *s, const struct value *v, struct places *out)
{
    struct placement *at;
    int n = space_placements(s, v, &at);
    for (int i = 0; i < n; i++)
        add_place(s, out, at[i]);
}

/* Whether some graph input other than a state has the symbol as a dimension. */
static bool is_told(const struct graph *g, const char *symbol)
{
    for (int i = 0; i < g->inputs.n; i++) {
        const struct value *v = g->inputs.at[i];
        for (int d = 0; !graph_state(g, v) && d < v->type.rank; d++)
            if (v->type.dim[d]->kind == DIM_SYM && strcmp(v->type.dim[d]->name, symbol) == 0)
                return true;
    }
    return false;
}

/* A rank that holds a part of a state cannot derive the state's global length from it, so another input must have that length. */
static bool size_is_told(const struct graph *g, const struct dim *size)
{
    const char *symbol[MAX_RANK];
    int n = dim_symbols(size, symbol, MAX_RANK);
    for (int i = 0; i < n; i++)
        if (!is_told(g, symbol[i]))
            return false;
    return true;
}

/* Whether dimension d has one size in past and present; the present may be transposed. */
static bool ends_agree(const struct state *st, int d)
{
    return !st->past || !st->present ||
        (d < st->present->type.rank && d < st->past->type.rank && st->past->type.dim[d] == st->present->type.dim[d]);
}

/* Placements of a state: it is never split on its growing dimension; if that is not known, on no dimension of run-time size. */
static struct places state_places(struct space *s, const struct state *st)
{
    struct places all = {0}, out = {0};
    if (st->past)
        add_splits(s, st->past, &all);
    if (st->present)
        add_splits(s, st->present, &all);
    for (int i = 0; i < all.list.n; i++) {
        struct placement p = all.list.at[i];
        if (p.kind == PLACE_R ||
            (p.dim != st->dim && (st->dim >= 0 || !p.split->balanced) && (p.split->partition || p.split->cover) &&
             size_is_told(s->g, split_size(s->g->alg, p.split)) && ends_agree(st, p.dim)))
            VEC_PUSH(s->arena, &out.list, p);
    }
    return out;
}

static void add_partials(struct space *s, const struct value *v, struct places *out)
{
    const struct strategies *list = &s->offered[s->producer[v->id]];
    require(list->list.n > 0);
    if (s->ranks > 1 && dtype_is_float(v->type.dtype))
        add_place(s, out, placement_partial(RED_SUM));
    for (int k = 0; k < list->list.n; k++)
        add_place(s, out, list->list.at[k]->out[v->index]);
}

struct places space_legal(struct space *s, const struct value *v)
{
    struct places out = {0};
    const struct state *st = graph_state(s->g, v);
    if (st)
        out = state_places(s, st);
    else
        add_splits(s, v, &out);
    if (!st && s->producer[v->id] >= 0)
        add_partials(s, v, &out);
    require(out.list.n > 0 && out.list.at[0].kind == PLACE_R); /* every value may be replicated */
    return out;
}

static struct places fitting(struct space *s, const struct value *v, const struct required_placements *required)
{
    struct places all = space_legal(s, v), out = {0};
    for (int i = 0; i < all.list.n; i++)
        if (all_fit(required, all.list.at[i]))
            VEC_PUSH(s->arena, &out.list, all.list.at[i]);
    return out;
}

struct places space_allowed(struct space *s, const struct value *v)
{
    return fitting(s, v, &s->limits.required[v->id]);
}

/* Placements to which the value is resharded before any node or output reads it. */
static struct required_placements *required_list_read(const struct space *s, const struct value *v)
{
    return graph_output_number(s->g, v) >= 0 && s->producer[v->id] >= 0 ? &s->limits.required_read[v->id] : &s->limits.required[v->id];
}

struct places space_read_places(struct space *s, const struct value *v)
{
    const struct required_placements *required = required_list_read(s, v);
    return required->list.n && s->producer[v->id] >= 0 ? fitting(s, v, required) : (struct places){0};
}

/* Parses the dimension of "S(-1)": 2 for a value of rank 3; -1 if the text or the dimension is invalid. */
static int named_dim(const char *text, int rank)
{
    char *end;
    if (strncmp(text, "S(", 2) != 0)
        return -1;
    long d = strtol(text + 2, &end, 10);
    if (end == text + 2 || strcmp(end, ")") != 0)
        return -1;
    d = d < 0 ? d + rank : d;
    return d >= 0 && d < rank ? (int)d : -1;
}

const char *required_like(struct arena *a, const char *like, struct placement p)
{
    return p.kind != PLACE_S || strchr(like, ';') ? placement_str(a, p) : arena_printf(a, "S(%d)", p.dim);
}

static _Noreturn void refuse_value(struct space *s, const char *where, const struct value *v, const struct required_placements *before,
                                   const char *text)
{
    struct places legal = fitting(s, v, before);
    const char **names = NEWN(s->arena, const char *, legal.list.n + 1);
    for (int i = 0; i < legal.list.n; i++)
        names[i] = required_like(s->arena, text, legal.list.at[i]);
    fail("%s: '%s' (%s) can't be placed '%s'%s; the nearest legal placement is '%s'", where, v->name, type_str(s->arena, &v->type), text,
         before->list.n ? arena_printf(s->arena, " beside %s", before->list.at[0].where) : "",
         names[did_you_mean(text, legal.list.n, names)]);
}

struct required_placement required_parse(struct space *s, const char *where, const struct value *v, const char *text)
{
    struct required_placement w = {.where = where, .text = text, .kind = PLACE_S, .dim = named_dim(text, v->type.rank)};
    struct placement p;
    const char *error;
    if (strncmp(text, "S(", 2) == 0 && !strchr(text, ';')) {
        if (w.dim < 0)
            refuse_value(s, where, v, &s->limits.required[v->id], text);
    } else if (strcmp(text, "P") == 0) {
        w.kind = PLACE_P;
    } else if (placement_parse(s->g->alg, text, &p, &error)) {
        w = (struct required_placement){.where = where, .text = text, .kind = p.kind, .dim = p.dim, .split = p.split, .op = p.op};
    } else {
        fail("%s: expected a placement R, P, P(sum), S(dimension) or S(dimension; split), found '%s': %s", where, text, error);
    }
    return w;
}

static void required_check(struct space *s, const struct value *v, struct required_placements *all)
{
    if (fitting(s, v, all).list.n > 0)
        return;
    struct required_placement last = all->list.at[--all->list.n]; /* the requirements before it could be met */
    refuse_value(s, last.where, v, all, last.text);
}

void required_add(struct space *s, const char *where, const struct value *v, const char *text, bool check)
{
    const struct state *st = graph_state(s->g, v);
    const struct value *end[] = {v, st ? st->past : NULL, st ? st->present : NULL}; /* past and present of a state have one placement */
    struct required_placement w = required_parse(s, where, v, text);
    for (int i = 0; i < 3; i++)
        if (end[i] && (i == 0 || end[i] != v))
            VEC_PUSH(s->arena, &s->limits.required[end[i]->id].list, w);
    if (check)
        required_check(s, v, &s->limits.required[v->id]);
}

void required_add_read(struct space *s, const char *where, const struct value *v, const char *text, bool check)
{
    struct required_placements *all = required_list_read(s, v);
    if (all == &s->limits.required[v->id]) {
        required_add(s, where, v, text, check);
        return;
    }
    VEC_PUSH(s->arena, &all->list, required_parse(s, where, v, text));
    if (check)
        required_check(s, v, all);
}

bool space_seed(struct space *s, const struct value *v, int d, const struct split *split, bool sequence)
{
    const struct dim *size = v->type.dim[d];
    const struct split *own = split ? split : shares_split(s, size);
    if (dim_equals(size, 1) || own->ranks != s->ranks || split_size(s->g->alg, own) != size || (!split && s->candidates[v->id][d].list.n))
        return false;
    return space_add(s, v, d, (struct candidate){own, sequence || !dim_is_int(size, NULL), "required by a constraint", -1});
}

bool required_seed(struct space *s, const struct value *v, const struct required_placement *w)
{
    return w->kind == PLACE_S && w->dim < v->type.rank && space_seed(s, v, w->dim, w->split, false);
}

bool required_seed_all(struct space *s)
{
    bool changed = false;
    for (int i = 0; i < s->g->values.n; i++) {
        const struct required_placements *both[] = {&s->limits.required[i], &s->limits.required_read[i]};
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < both[k]->list.n; j++)
                changed |= required_seed(s, s->g->values.at[i], &both[k]->list.at[j]);
    }
    return changed;
}
