/* stage_cut: the positions where stages begin, by dynamic programming over the positions where a stage may.
 *
 * What a stage takes depends on nothing but its two ends: the nodes between them, and the values made before that it reads, each once and
 * all as of one message. So all pairs of positions are priced first. Then one search finds the least time of the slowest stage, and
 * another, among the cuts that are nearly as fast, the one by which least crosses. */
#include "plan/stages/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct position {
    int at;
    double bytes; /* made before and read behind */
};
struct search {
    struct arena *arena;
    const struct stage_map *map;
    const struct stage_prices *prices;
    int n;
    struct position *position;
    double *seconds, *bytes, *held; /* of a stage from position i to j: at i * n + j */
};

/* ---- positions ---------------------------------------------------------------------------------------------------------------------- */

static bool is_made_before(const struct search *s, const struct value *v, int at)
{
    return v && s->map->position[v->id] >= 0 && s->map->position[v->id] < at;
}

/* By value id: the last node that reads it. */
static const int *last_readers(const struct search *s, struct arena *tmp)
{
    int *last = NEWN(tmp, int, s->map->g->values.n + 1);
    for (int i = 0; i < s->map->g->nodes.n; i++)
        for (int k = 0; k < s->map->g->nodes.at[i]->nin; k++)
            if (s->map->g->nodes.at[i]->in[k])
                last[s->map->g->nodes.at[i]->in[k]->id] = i;
    return last;
}

static void add_crossing(const struct search *s, double *bytes)
{
    struct arena *tmp = arena_new();
    const int *last = last_readers(s, tmp);
    for (int i = 0; i < s->map->g->values.n; i++)
        for (int at = s->map->position[i] + 1; s->map->position[i] >= 0 && at <= last[i]; at++)
            bytes[at] += s->prices->bytes[i];
    arena_free(tmp);
}

static int by_bytes(const void *a, const void *b)
{
    const struct position *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes) - (x->bytes < y->bytes) : x->at - y->at;
}

static int by_place(const void *a, const void *b)
{
    return ((const struct position *)a)->at - ((const struct position *)b)->at;
}

/* The two ends are always among them: nothing crosses there. */
static void find_positions(struct search *s)
{
    int nodes = s->map->g->nodes.n;
    double *bytes = NEWN(s->arena, double, nodes + 1);
    add_crossing(s, bytes);
    s->position = NEWN(s->arena, struct position, nodes + 1);
    for (int at = 0; at <= nodes; at++)
        if (s->map->cut[at] || at == 0 || at == nodes)
            s->position[s->n++] = (struct position){at, at == 0 || at == nodes ? -1 : bytes[at]};
    qsort(s->position, (size_t)s->n, sizeof *s->position, by_bytes);
    s->n = s->n < STAGE_POSITIONS ? s->n : STAGE_POSITIONS;
    qsort(s->position, (size_t)s->n, sizeof *s->position, by_place);
}

/* ---- what a stage comes to -------------------------------------------------------------------------------------------------------- */

struct sum {
    double seconds, bytes, held;
    bool receives;
};

/* seen: by value id, the number of the last stage that counted it. */
static void add_operands(const struct search *s, const struct node *n, int from, int *seen, int number, struct sum *sum)
{
    for (int k = 0; k < n->nin; k++) {
        const struct value *v = n->in[k];
        if (!v || seen[v->id] == number)
            continue;
        seen[v->id] = number;
        sum->held += s->prices->held[v->id];
        if (!is_made_before(s, v, from))
            continue;
        sum->seconds += s->prices->crossing[v->id] + (sum->receives ? 0 : s->prices->message);
        sum->bytes += s->prices->bytes[v->id];
        sum->receives = true;
    }
}

static void price_from(struct search *s, int i, int *seen)
{
    struct sum sum = {0};
    int at = s->position[i].at;
    for (int j = i; j < s->n; j++) {
        for (; at < s->position[j].at; at++) {
            sum.seconds += s->map->copied[at] ? 0 : s->prices->node[at];
            add_operands(s, s->map->g->nodes.at[at], s->position[i].at, seen, i + 1, &sum);
        }
        s->seconds[i * s->n + j] = sum.seconds;
        s->bytes[i * s->n + j] = sum.bytes;
        s->held[i * s->n + j] = sum.held;
    }
}

static void price_all(struct search *s)
{
    int *seen = NEWN(s->arena, int, s->map->g->values.n + 1);
    size_t pairs = (size_t)s->n * (size_t)s->n;
    s->seconds = NEWN(s->arena, double, pairs);
    s->bytes = NEWN(s->arena, double, pairs);
    s->held = NEWN(s->arena, double, pairs);
    for (int i = 0; i < s->n; i++)
        price_from(s, i, seen);
}

/* ---- search ------------------------------------------------------------------------------------------------------------------------- */

/* Of so many stages that end at the last position, the least that the largest of them may be; each: of a stage from position i to j. */
static double least_largest(const struct search *s, const double *each, int stages)
{
    double *best = NEWN(s->arena, double, s->n), *next = NEWN(s->arena, double, s->n);
    for (int j = 0; j < s->n; j++)
        best[j] = each[j];
    for (int k = 1; k < stages; k++) {
        for (int j = 0; j < s->n; j++) {
            next[j] = INFINITY;
            for (int i = 0; i <= j; i++)
                next[j] = fmin(next[j], fmax(best[i], each[i * s->n + j]));
        }
        memcpy(best, next, (size_t)s->n * sizeof *best);
    }
    return best[s->n - 1];
}

/* Stages that end at a position, and where the last of them begins. */
struct partial {
    double bytes, held;
    int from;
};

static bool is_better(const struct partial *a, const struct partial *b)
{
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->held < b->held;
}

static struct partial best_partial(const struct search *s, const struct partial *before, int j, double limit)
{
    struct partial best = {INFINITY, INFINITY, 0};
    for (int i = 0; i <= j; i++) {
        int pair = i * s->n + j;
        struct partial one = {before[i].bytes + s->bytes[pair], fmax(before[i].held, s->held[pair]), i};
        if (s->seconds[pair] <= limit && is_better(&one, &best))
            best = one;
    }
    return best;
}

/* Of the cuts whose stages all keep the limit. */
static void least_crossing(const struct search *s, double limit, struct stage_cut *cut)
{
    struct partial **best = NEWN(s->arena, struct partial *, cut->stages + 1);
    for (int k = 0; k <= cut->stages; k++) {
        best[k] = NEWN(s->arena, struct partial, s->n);
        for (int j = 0; j < s->n; j++)
            best[k][j] = k ? best_partial(s, best[k - 1], j, limit) : (struct partial){j ? INFINITY : 0, 0, 0};
    }
    cut->bytes = best[cut->stages][s->n - 1].bytes;
    cut->held = best[cut->stages][s->n - 1].held;
    for (int k = cut->stages, j = s->n - 1; k > 0; k--) {
        int i = best[k][j].from;
        cut->first[k] = s->position[j].at;
        cut->seconds[k - 1] = s->seconds[i * s->n + j];
        j = i;
    }
    cut->first[0] = 0;
}

/* What holds more than a stage has room for is no stage, unless every cut has one. */
static double least_within_room(const struct search *s, int stages)
{
    size_t pairs = (size_t)s->n * (size_t)s->n;
    double *all = NEWN(s->arena, double, pairs);
    if (s->prices->room <= 0)
        return least_largest(s, s->seconds, stages);
    memcpy(all, s->seconds, pairs * sizeof *all);
    for (size_t i = 0; i < pairs; i++)
        if (s->held[i] > s->prices->room)
            s->seconds[i] = INFINITY;
    double least = least_largest(s, s->seconds, stages);
    if (isfinite(least))
        return least;
    memcpy(s->seconds, all, pairs * sizeof *all);
    return least_largest(s, s->seconds, stages);
}

struct stage_cut stage_cut_find(struct arena *a, const struct stage_map *map, const struct stage_prices *prices, int stages)
{
    struct search s = {.arena = arena_new(), .map = map, .prices = prices};
    struct stage_cut cut = {.stages = stages, .copied = map->copied};
    require(stages >= 1);
    cut.first = NEWN(a, int, stages + 1);
    cut.seconds = NEWN(a, double, stages);
    find_positions(&s);
    price_all(&s);
    least_crossing(&s, least_within_room(&s, stages) * (1 + STAGE_NEAR), &cut);
    arena_free(s.arena);
    return cut;
}

double stage_cut_least_held(const struct stage_map *map, const struct stage_prices *prices, int stages)
{
    struct search s = {.arena = arena_new(), .map = map, .prices = prices};
    find_positions(&s);
    price_all(&s);
    double least = least_largest(&s, s.held, stages);
    arena_free(s.arena);
    return least;
}

int stage_of(const struct stage_map *m, const struct stage_cut *cut, const struct value *v)
{
    int at = m->position[v->id];
    for (int k = 0; at >= 0 && k < cut->stages; k++)
        if (at < cut->first[k + 1])
            return k;
    return -1;
}

int stage_sender(const struct stage_plan *p, const char *value)
{
    const struct value *v = graph_find(p->map.g, value);
    return v ? stage_of(&p->map, &p->cut, v) : -1;
}

static bool stage_reads(const struct stage_plan *p, const struct value *v, int stage)
{
    for (int i = p->cut.first[stage]; i < p->cut.first[stage + 1]; i++)
        for (int k = 0; !p->map.copied[i] && k < p->map.g->nodes.at[i]->nin; k++)
            if (p->map.g->nodes.at[i]->in[k] == v)
                return true;
    return false;
}

int stage_readers(struct arena *a, const struct stage_plan *p, const char *value, const int **out)
{
    const struct value *v = graph_find(p->map.g, value);
    int *stages = NEWN(a, int, p->cut.stages), n = 0, from = v ? stage_of(&p->map, &p->cut, v) : -1;
    for (int k = from + 1; from >= 0 && k < p->cut.stages; k++)
        if (stage_reads(p, v, k))
            stages[n++] = k;
    *out = stages;
    return n;
}

double stage_receives(const struct stage_plan *p, int stage)
{
    double seconds = 0;
    bool any = false;
    for (int i = 0; i < p->map.g->values.n; i++) {
        int from = stage_of(&p->map, &p->cut, p->map.g->values.at[i]);
        if (from < 0 || from >= stage || !stage_reads(p, p->map.g->values.at[i], stage))
            continue;
        seconds += p->prices.crossing[i];
        any = true;
    }
    return any ? seconds + p->prices.message : 0;
}
