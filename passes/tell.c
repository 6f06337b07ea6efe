/* tell: -v in a few lines: changes of a graph's operators, and the slowest passes. */
#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KINDS = 6, MOST_TIMES = 5, MOST_ROWS = 64 };

struct kind {
    const char *name;
    int before, after;
};
struct pass_record {
    struct arena *arena;
    VEC(struct kind) kinds;
    int before, after, emitted, collectives;
    double seconds[MOST_ROWS], all;
};

struct pass_record *pass_record_new(struct arena *a)
{
    struct pass_record *r = NEW(a, struct pass_record);
    r->arena = a;
    return r;
}

static struct kind *kind_of(struct pass_record *r, const char *name)
{
    int at = NAMED_AT(r->kinds.at, r->kinds.n, name);
    if (at >= 0)
        return &r->kinds.at[at];
    VEC_PUSH(r->arena, &r->kinds, ((struct kind){.name = name}));
    return &r->kinds.at[r->kinds.n - 1];
}

static int count_kinds(struct pass_record *r, const struct graph *g, bool after)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct kind *k = kind_of(r, g->nodes.at[i]->optype);
        ++*(after ? &k->after : &k->before);
    }
    return g->nodes.n;
}

void pass_record_add(struct compile *c, int row, double seconds)
{
    struct pass_record *r = c->record;
    const char *pass = pass_rows[row].name;
    require(row < MOST_ROWS);
    r->seconds[row] += seconds;
    r->all += seconds;
    if (strcmp(pass, "load") == 0)
        r->before = count_kinds(r, c->graph, false);
    else if (strcmp(pass, "canon") == 0)
        r->after = count_kinds(r, c->graph, true);
    for (int i = 0; c->rank_graphs && i < c->rank_graphs[0]->nodes.n && strcmp(pass, "localize") == 0; i++)
        r->collectives += collective_parse(c->rank_graphs[0]->nodes.at[i]->optype) != COLL_NONE;
    r->emitted = c->rank_graphs ? c->rank_graphs[0]->nodes.n : 0;
}

static int by_loss(const void *x, const void *y)
{
    const struct kind *a = x, *b = y;
    int one = a->before - a->after, other = b->before - b->after;
    return one == other ? strcmp(a->name, b->name) : one > other ? -1 : 1;
}

/* sign 1: op kinds whose number fell; -1: rose. "" if none. */
static const char *changed(struct pass_record *r, int sign)
{
    const char *text = "";
    int n = r->kinds.n, told = 0, more = 0;
    for (int i = 0; i < n; i++) {
        const struct kind *k = &r->kinds.at[sign > 0 ? i : n - 1 - i];
        int fewer = sign * (k->before - k->after);
        if (fewer > 0 && told++ < MOST_KINDS)
            text = arena_printf(r->arena, "%s%s%d %s", text, *text ? ", " : "", fewer, k->name);
        else if (fewer > 0)
            more++;
    }
    return more ? arena_printf(r->arena, "%s and %d more kinds", text, more) : text;
}

static void tell_operators(struct pass_record *r)
{
    qsort(r->kinds.at, (size_t)r->kinds.n, sizeof *r->kinds.at, by_loss);
    const char *gone = changed(r, 1), *added = changed(r, -1);
    const char *ranks = r->emitted ? arena_printf(r->arena, ", %d on each rank, of which %d are collectives", r->emitted, r->collectives)
                                   : "";
    explain("operators: %d in the file, %d without shape arithmetic, constants and copies%s", r->before, r->after, ranks);
    if (*gone || *added)
        explain("gone: %s%s%s", *gone ? gone : "nothing", *added ? "; new: " : "", added);
}

static int slowest(const struct pass_record *r, const bool *told)
{
    int most = -1;
    for (int i = 0; i < MOST_ROWS && pass_rows[i].name; i++)
        if (!told[i] && r->seconds[i] > 0 && (most < 0 || r->seconds[i] > r->seconds[most]))
            most = i;
    return most;
}

static void tell_seconds(struct pass_record *r)
{
    const char *text = "";
    bool told[MOST_ROWS] = {false};
    for (int n = 0, i; n < MOST_TIMES && (i = slowest(r, told)) >= 0 && r->seconds[i] >= 0.01 * r->all; n++) {
        text = arena_printf(r->arena, "%s%s%s %.3f", text, *text ? ", " : "", pass_rows[i].name, r->seconds[i]);
        told[i] = true;
    }
    explain("%.3f seconds, of which passes (--list-passes): %s", r->all, text);
}

void pass_tell(const struct compile *c)
{
    if (!c->record)
        return;
    tell_operators(c->record);
    tell_seconds(c->record);
}
