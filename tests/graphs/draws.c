/* Random choices, recorded and reduced. Random numbers are SplitMix64 (Steele, Lea, Flood 2014). */
#include "tests/graphs/draws.h"

#include <string.h>

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct draws draws_random(struct arena *arena, uint64_t seed)
{
    return (struct draws){.arena = arena, .state = seed};
}

struct draws draws_given(struct arena *arena, const struct draw_list *given)
{
    return (struct draws){.arena = arena, .given = given};
}

static uint32_t choose(struct draws *d, uint32_t n)
{
    int at = d->made.list.n;
    if (!d->given)
        return (uint32_t)(next_random(&d->state) >> 32) % n;
    if (at >= d->given->list.n)
        return 0;
    uint32_t k = d->given->list.at[at];
    return k < n ? k : n - 1;
}

uint32_t draw(struct draws *d, uint32_t n)
{
    require(n >= 1);
    uint32_t k = choose(d, n);
    VEC_PUSH(d->arena, &d->made.list, k);
    return k;
}

/* ---- shrinking --------------------------------------------------------------------------------------------------------------------- */

struct shrink {
    struct arena *arena;
    struct draw_list *best;
    int tries;
    draws_fail *fails;
    void *data;
};

static struct draw_list copy_of(struct shrink *s)
{
    struct draw_list out = {{NULL, 0, 0}};
    for (int i = 0; i < s->best->list.n; i++)
        VEC_PUSH(s->arena, &out.list, s->best->list.at[i]);
    return out;
}

/* Shorter, or as long and smaller at the first difference. */
static bool is_smaller(const struct draw_list *a, const struct draw_list *b)
{
    if (a->list.n != b->list.n)
        return a->list.n < b->list.n;
    for (int i = 0; i < a->list.n; i++)
        if (a->list.at[i] != b->list.at[i])
            return a->list.at[i] < b->list.at[i];
    return false;
}

static bool accept(struct shrink *s, struct draw_list *candidate)
{
    if (s->tries-- <= 0 || !s->fails(s->data, candidate) || !is_smaller(candidate, s->best))
        return false;
    *s->best = *candidate;
    return true;
}

static bool drop_run(struct shrink *s, int at, int n)
{
    struct draw_list c = copy_of(s);
    memmove(c.list.at + at, c.list.at + at + n, (size_t)(c.list.n - at - n) * sizeof *c.list.at);
    c.list.n -= n;
    return accept(s, &c);
}

static bool drop_runs(struct shrink *s)
{
    bool any = false;
    for (int n = 64; n >= 1; n /= 2)
        for (int at = s->best->list.n - n; at >= 0 && s->tries > 0; at = at < s->best->list.n ? at - 1 : s->best->list.n - n)
            if (at + n <= s->best->list.n && drop_run(s, at, n))
                any = true;
    return any;
}

static bool lower(struct shrink *s, int at, uint32_t to)
{
    if (at >= s->best->list.n || s->best->list.at[at] <= to)
        return false;
    struct draw_list c = copy_of(s);
    c.list.at[at] = to;
    return accept(s, &c);
}

static bool lower_all(struct shrink *s)
{
    bool any = false;
    for (int at = 0; at < s->best->list.n && s->tries > 0; at++)
        if (lower(s, at, 0) || lower(s, at, s->best->list.at[at] / 2) ||
            (at < s->best->list.n && s->best->list.at[at] && lower(s, at, s->best->list.at[at] - 1)))
            any = true;
    return any;
}

void draws_shrink(struct arena *arena, struct draw_list *list, int tries, draws_fail *fails, void *data)
{
    struct shrink s = {arena, list, tries, fails, data};
    for (bool dropped = true, lowered = true; (dropped || lowered) && s.tries > 0;) {
        dropped = drop_runs(&s);
        lowered = lower_all(&s);
    }
}
