/* stage_cut: the positions where stages begin, by dynamic programming over the positions where a stage may.
 *
 * The time of a stage depends only on its two ends: the nodes between them, and the earlier values that it reads, each once and all in one
 * message. So all pairs of positions are priced first. Then one search finds the least time of the slowest stage, and another the cut with
 * the least traffic among those that are nearly as fast. */
#include "plan/stages/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct position {
    int at;
    double bytes; /* made before it and read after it */
};
struct search {
    struct arena *arena;
    const struct stage_map *map;
    const struct stage_prices *prices;
    int stages, n;
    struct position *position;
    double *work, *receives, *bytes, *held; /* of a stage from position i to j: at i * n + j. work, receives: seconds */
    bool within;                            /* whether a stage must keep its memory limit */
};

/* ---- positions ---------------------------------------------------------------------------------------------------------------------- */

/* May stage k begin at the position? */
static bool begins(const struct search *s, int k, int at)
{
    return !s->map->least || k == 0 || (at >= s->map->least[k] && at <= s->map->most[k]);
}

/* By value id: the first and last position where it is made or read. */
struct reach {
    int first, last;
};

static void reach_to(struct reach *r, int place)
{
    if (r->first < 0 || place < 0)
        return;
    r->first = place < r->first ? place : r->first;
    r->last = place > r->last ? place : r->last;
}

static const struct reach *find_reach(const struct search *s, struct arena *tmp)
{
    const struct graph *g = s->map->g;
    struct reach *r = NEWN(tmp, struct reach, g->values.n + 1);
    for (int i = 0; i < g->values.n; i++)
        r[i] = (struct reach){s->map->position[i], s->map->position[i]};
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++)
            if (g->nodes.at[i]->in[k])
                reach_to(&r[g->nodes.at[i]->in[k]->id], s->map->place[i]);
    return r;
}

static void add_crossing(const struct search *s, double *bytes)
{
    struct arena *tmp = arena_new();
    const struct reach *r = find_reach(s, tmp);
    for (int i = 0; i < s->map->g->values.n; i++)
        for (int at = r[i].first + 1; r[i].first >= 0 && at <= r[i].last; at++)
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

/* With given stages, each keeps the position of least bytes among those where it may begin. */
static void keep_given(struct search *s)
{
    for (int k = 1; s->map->least && k < s->stages; k++) {
        struct position *best = NULL;
        for (int i = 0; i < s->n; i++)
            if (begins(s, k, s->position[i].at) && (!best || s->position[i].bytes < best->bytes))
                best = &s->position[i];
        require(best);
        best->bytes = -1;
    }
}

/* Both ends are always among them: nothing crosses there. */
static void find_positions(struct search *s)
{
    int nodes = s->map->g->nodes.n;
    double *bytes = NEWN(s->arena, double, nodes + 1);
    add_crossing(s, bytes);
    s->position = NEWN(s->arena, struct position, nodes + 1);
    for (int at = 0; at <= nodes; at++)
        if (s->map->cut[at] || at == 0 || at == nodes)
            s->position[s->n++] = (struct position){at, at == 0 || at == nodes ? -1 : bytes[at]};
    keep_given(s);
    qsort(s->position, (size_t)s->n, sizeof *s->position, by_bytes);
    s->n = s->n < STAGE_POSITIONS ? s->n : STAGE_POSITIONS;
    qsort(s->position, (size_t)s->n, sizeof *s->position, by_place);
    require(s->position[0].at == 0 && s->position[s->n - 1].at == nodes);
}

/* ---- the cost of a stage -------------------------------------------------------------------------------------------------------- */

struct sum {
    double work, receives, bytes, held;
    bool any; /* whether anything is received */
};
/* The nodes of each position: of the forward pass, then of the backward pass; -1: none. */
struct nodes_at {
    int *first, *next;
};

static struct nodes_at find_nodes_at(const struct search *s, struct arena *tmp)
{
    int n = s->map->g->nodes.n;
    struct nodes_at at = {NEWN(tmp, int, n + 1), NEWN(tmp, int, n + 1)};
    for (int i = 0; i <= n; i++)
        at.first[i] = -1;
    for (int i = n - 1; i >= 0; i--)
        if (s->map->place[i] >= 0) {
            at.next[i] = at.first[s->map->place[i]];
            at.first[s->map->place[i]] = i;
        }
    return at;
}

/* One direction of a search: values made on its other side come from another stage. seen: by value id, the last stage that counted it. */
struct side {
    const struct search *s;
    struct nodes_at nodes;
    int *seen, number;
    int from, to; /* positions of the other side */
};

static void add_received(const struct side *x, const struct value *v, struct sum *sum)
{
    int at = x->s->map->position[v->id];
    if (at < x->from || at >= x->to)
        return;
    sum->receives += x->s->prices->crossing[v->id] + (sum->any ? 0 : x->s->prices->message);
    sum->bytes += x->s->prices->bytes[v->id];
    sum->any = true;
}

/* held: count what it holds, too. */
static void add_position(const struct side *x, int at, bool held, struct sum *sum)
{
    for (int i = x->nodes.first[at]; i >= 0; i = x->nodes.next[i]) {
        const struct node *n = x->s->map->g->nodes.at[i];
        sum->work += held ? x->s->prices->node[i] : 0;
        for (int k = 0; k < n->nin; k++) {
            if (!n->in[k] || x->seen[n->in[k]->id] == x->number)
                continue;
            x->seen[n->in[k]->id] = x->number;
            sum->held += held ? x->s->prices->held[n->in[k]->id] : 0;
            add_received(x, n->in[k], sum);
        }
    }
}

/* Prices all stages that begin at position i: their work, and what earlier stages send. */
static void price_from(struct search *s, struct side *x, int i)
{
    struct sum sum = {0};
    int at = s->position[i].at;
    x->from = 0;
    x->to = at;
    x->number++;
    for (int j = i; j < s->n; j++) {
        for (; at < s->position[j].at; at++)
            add_position(x, at, true, &sum);
        s->work[i * s->n + j] = sum.work;
        s->receives[i * s->n + j] = sum.receives;
        s->bytes[i * s->n + j] = sum.bytes;
        s->held[i * s->n + j] = sum.held;
    }
}

/* Prices all stages that end at position j: the gradients that later stages send. */
static void price_to(struct search *s, struct side *x, int j)
{
    struct sum sum = {0};
    int at = s->position[j].at;
    x->from = at;
    x->to = s->map->g->nodes.n;
    x->number++;
    for (int i = j; i >= 0; i--) {
        while (at > s->position[i].at)
            add_position(x, --at, false, &sum);
        s->receives[i * s->n + j] += sum.receives;
        s->bytes[i * s->n + j] += sum.bytes;
    }
}

static void price_all(struct search *s)
{
    struct side x = {.s = s, .nodes = find_nodes_at(s, s->arena), .seen = NEWN(s->arena, int, s->map->g->values.n + 1)};
    size_t pairs = (size_t)s->n * (size_t)s->n;
    s->work = NEWN(s->arena, double, pairs);
    s->receives = NEWN(s->arena, double, pairs);
    s->bytes = NEWN(s->arena, double, pairs);
    s->held = NEWN(s->arena, double, pairs);
    for (int i = 0; i < s->n; i++)
        price_from(s, &x, i);
    for (int j = 0; s->map->g->trained.n && j < s->n; j++)
        price_to(s, &x, j);
}

/* ---- search ------------------------------------------------------------------------------------------------------------------------- */

/* Of stage k, from position i to j: pair is i * n + j. */
static double seconds_of(const struct search *s, int k, int pair)
{
    const struct stage_prices *p = s->prices;
    if (!begins(s, k, s->position[pair / s->n].at))
        return INFINITY;
    if (s->within && p->room && s->held[pair] > p->room[k])
        return INFINITY;
    return s->work[pair] * (p->slower ? p->slower[k] : 1) + s->receives[pair];
}

/* Its memory relative to its limit, if that is known. */
static double fullness(const struct search *s, int k, int pair)
{
    if (!begins(s, k, s->position[pair / s->n].at))
        return INFINITY;
    return s->held[pair] / (s->prices->room ? s->prices->room[k] : 1);
}

/* The least possible maximum of `each` over the stages. */
static double least_largest(const struct search *s, double (*each)(const struct search *, int k, int pair), int stages)
{
    double *best = NEWN(s->arena, double, s->n), *next = NEWN(s->arena, double, s->n);
    for (int j = 0; j < s->n; j++)
        best[j] = each(s, 0, j);
    for (int k = 1; k < stages; k++) {
        for (int j = 0; j < s->n; j++) {
            next[j] = INFINITY;
            for (int i = 0; i <= j; i++)
                next[j] = fmin(next[j], fmax(best[i], each(s, k, i * s->n + j)));
        }
        memcpy(best, next, (size_t)s->n * sizeof *best);
    }
    return best[s->n - 1];
}

/* Stages that end at a position, and where the last of them begins. */
struct partial {
    double bytes, fullness;
    int from;
};

static bool is_better(const struct partial *a, const struct partial *b)
{
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->fullness < b->fullness;
}

/* before: of the stages before stage k. */
static struct partial best_partial(const struct search *s, const struct partial *before, int k, int j, double limit)
{
    struct partial best = {INFINITY, INFINITY, 0};
    for (int i = 0; i <= j; i++) {
        int pair = i * s->n + j;
        struct partial one = {before[i].bytes + s->bytes[pair], fmax(before[i].fullness, fullness(s, k, pair)), i};
        if (seconds_of(s, k, pair) <= limit && is_better(&one, &best))
            best = one;
    }
    return best;
}

/* The cut with the least traffic among those whose stages all keep the limit. */
static void least_crossing(const struct search *s, double limit, struct stage_cut *cut)
{
    struct partial **best = NEWN(s->arena, struct partial *, cut->stages + 1);
    for (int k = 0; k <= cut->stages; k++) {
        best[k] = NEWN(s->arena, struct partial, s->n);
        for (int j = 0; j < s->n; j++)
            best[k][j] = k ? best_partial(s, best[k - 1], k - 1, j, limit) : (struct partial){j ? INFINITY : 0, 0, 0};
    }
    cut->bytes = best[cut->stages][s->n - 1].bytes;
    require(isfinite(cut->bytes)); /* some cut keeps the limit */
    int j = s->n - 1;
    for (int k = cut->stages; k > 0; k--) {
        int i = best[k][j].from;
        cut->first[k] = s->position[j].at;
        cut->seconds[k - 1] = seconds_of(s, k - 1, i * s->n + j);
        require(i <= j && cut->seconds[k - 1] <= limit);
        cut->work[k - 1] = cut->seconds[k - 1] - s->receives[i * s->n + j];
        cut->held = fmax(cut->held, s->held[i * s->n + j]);
        j = i;
    }
    require(j == 0); /* the stages make up the graph */
    cut->first[0] = 0;
}

/* Within the memory limit of each stage, unless every cut has a stage that exceeds it. */
static double least_seconds(struct search *s, int stages)
{
    s->within = true;
    double least = least_largest(s, seconds_of, stages);
    if (isfinite(least))
        return least;
    s->within = false;
    return least_largest(s, seconds_of, stages);
}

static struct search begin(const struct stage_map *map, const struct stage_prices *prices, int stages)
{
    struct search s = {.arena = arena_new(), .map = map, .prices = prices, .stages = stages};
    find_positions(&s);
    price_all(&s);
    return s;
}

struct stage_cut stage_cut_find(struct arena *a, const struct stage_map *map, const struct stage_prices *prices, int stages)
{
    struct stage_cut cut = {.stages = stages, .copied = map->copied};
    require(stages >= 1);
    cut.first = NEWN(a, int, stages + 1);
    cut.seconds = NEWN(a, double, stages);
    cut.work = NEWN(a, double, stages);
    struct search s = begin(map, prices, stages);
    least_crossing(&s, least_seconds(&s, stages) * (1 + STAGE_NEAR), &cut);
    arena_free(s.arena);
    return cut;
}

double stage_cut_least_part(const struct stage_map *map, const struct stage_prices *prices, int stages)
{
    require(prices->room);
    struct search s = begin(map, prices, stages);
    double least = least_largest(&s, fullness, stages);
    arena_free(s.arena);
    return least;
}
