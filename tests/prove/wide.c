/* wide: splits that no seed of the planner suggests, on any dimension: uneven, with empty ranks, scattered, overlapping. Rules, reshards,
 * the runtime and files take any split; a plan file may ask for it. */
#include "plan/space/space.h"
#include "tests/prove/private.h"

enum { LONGEST = 64 }; /* of a dimension that is split index by index */

static uint64_t bits(uint64_t *state)
{
    *state = (*state ^ *state >> 29) * 0x9E3779B97F4A7C15u + 77;
    return *state >> 33;
}

/* Every index goes to one rank, by runs or one by one, and with overlap some go to another, too. */
static const struct split *random_split(struct space *s, int64_t n, uint64_t *state)
{
    struct interval **list = NEWN(s->arena, struct interval *, s->ranks);
    int *count = NEWN(s->arena, int, s->ranks);
    bool runs = bits(state) % 2, overlap = bits(state) % 4 == 0;
    uint64_t ranks = (uint64_t)s->ranks, owner = bits(state) % ranks;
    for (int r = 0; r < s->ranks; r++)
        list[r] = NEWN(s->arena, struct interval, n + 1);
    for (int64_t i = 0; i < n; i++) {
        if (!runs || bits(state) % 3 == 0)
            owner = bits(state) % ranks;
        uint64_t second = overlap && bits(state) % 3 == 0 ? bits(state) % ranks : owner;
        for (uint64_t r = 0; r < ranks; r++)
            if (r == owner || r == second)
                list[r][count[r]++] = (struct interval){i, i + 1};
    }
    return split_list(s->g->alg, s->ranks, n, count, (const struct interval *const *)list);
}

static const struct split *any_split(struct space *s, const struct dim *size, uint64_t *state)
{
    int64_t n;
    if (!dim_is_int(size, &n) || n > LONGEST || bits(state) % 3 == 0)
        return split_even(s->g->alg, s->ranks, size);
    return random_split(s, n, state);
}

/* Replicated and about this many random candidates: choosing among all is slow and no more random. */
enum { LEFT = 1 };

static void thin_node(struct space *s, int i, uint64_t *state)
{
    struct strategies *from = &s->strategies[i], left = {0};
    int n = from->list.n;
    for (int k = 0; k < n; k++)
        if (!strategy_splits(s->g->nodes.at[i], from->list.at[k]) || (int)(bits(state) % (uint64_t)n) < LEFT)
            VEC_PUSH(s->arena, &left.list, from->list.at[k]);
    *from = left;
}

void wide_thin(struct space *s, uint64_t seed)
{
    uint64_t state = seed;
    for (int i = 0; i < s->g->nodes.n; i++)
        thin_node(s, i, &state);
}

/* By name, so that a part of the graph has the splits that the whole has. */
static uint64_t state_of(const struct value *v, int d, uint64_t seed)
{
    uint64_t state = seed + (uint64_t)d;
    for (const char *c = v->name; *c; c++) {
        state += (unsigned char)*c;
        (void)bits(&state);
    }
    return state;
}

static void seed_value(struct space *s, const struct value *v, uint64_t seed)
{
    for (int d = 0; v->type.dtype != DT_NONE && d < v->type.rank; d++) {
        uint64_t state = state_of(v, d, seed);
        if (bits(&state) % 4 == 0 && !dim_equals(v->type.dim[d], 0) && !dim_equals(v->type.dim[d], 1))
            space_add(s, v, d, (struct candidate){any_split(s, v->type.dim[d], &state), false, "drawn for", -1});
    }
}

void wide_seed(struct space *s, uint64_t seed)
{
    for (int i = 0; i < s->g->values.n; i++)
        seed_value(s, s->g->values.at[i], seed);
    space_spread(s);
}
