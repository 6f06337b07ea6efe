/* split_pieces: a split at run time: the elements of a dimension that a rank holds for given symbol values. */
#include "algebra/dim/cell.h"

struct piece_list {
    struct arena *arena;
    VEC(struct interval) list;
};

static void add_piece(struct piece_list *p, int64_t lo, int64_t hi)
{
    if (lo >= hi)
        return;
    if (p->list.n > 0 && p->list.at[p->list.n - 1].hi == lo)
        p->list.at[p->list.n - 1].hi = hi;
    else
        VEC_PUSH(p->arena, &p->list, ((struct interval){lo, hi}));
}

/* v without elements of lower ranks: cut at the lowest rank's interval that intersects it, then both sides again. */
static void put_owned(struct piece_list *p, const struct split *s, int rank, struct interval v)
{
    for (int r = 0; r < rank; r++)
        for (int i = 0; i < s->count[r]; i++) {
            struct interval w = s->list[r][i];
            if (w.lo >= v.hi || w.hi <= v.lo)
                continue;
            if (v.lo < w.lo)
                put_owned(p, s, rank, (struct interval){v.lo, w.lo});
            if (w.hi < v.hi)
                put_owned(p, s, rank, (struct interval){w.hi, v.hi});
            return;
        }
    add_piece(p, v.lo, v.hi);
}

static struct piece_list pattern_pieces(struct arena *arena, const struct split *s, int rank, bool owned, int64_t n)
{
    struct piece_list p = {.arena = arena};
    if (s->balanced) {
        add_piece(&p, share_start(s->shares, s->ranks, n, rank), share_start(s->shares, s->ranks, n, rank + 1));
        return p;
    }
    for (int i = 0; i < s->count[rank]; i++)
        if (owned && !s->partition)
            put_owned(&p, s, rank, s->list[rank][i]);
        else
            add_piece(&p, s->list[rank][i].lo, s->list[rank][i].hi);
    return p;
}

/* Elements that lower ranks read belong to them: windows ascend. */
static int reading_pieces(struct arena *arena, const struct split *s, int rank, bool owned, int64_t n, int64_t size, struct interval **out)
{
    struct piece_list p = {.arena = arena};
    struct interval at = split_window_piece(s, rank, n, size);
    for (int r = 0; owned && r < rank; r++) {
        struct interval before = split_window_piece(s, r, n, size);
        at.lo = before.lo < before.hi && before.hi > at.lo ? before.hi : at.lo;
    }
    add_piece(&p, at.lo, at.hi);
    *out = p.list.at;
    return p.list.n;
}

static bool eval_size(const struct dim *d, const struct bindings *b, int64_t *out)
{
    static const struct bindings none;
    return dim_eval(d, b ? b : &none, out) && *out >= 0;
}

int split_pieces(struct arena *arena, const struct split *s, int rank, bool owned, const struct bindings *b, struct interval **out)
{
    int64_t outer, n, inner, period, total, pieces;
    require(rank >= 0 && rank < s->ranks);
    if (!eval_size(s->outer, b, &outer) || !eval_size(s->n, b, &n) || !eval_size(s->inner, b, &inner))
        return -1;
    if (s->reads)
        return eval_size(s->reads->size, b, &total) ? reading_pieces(arena, s, rank, owned, n, total, out) : -1;
    if (!i64_mul(n, inner, &period) || !i64_mul(period, outer, &total))
        return -1;
    struct piece_list once = pattern_pieces(arena, s, rank, owned, n), all = {.arena = arena};
    if (!i64_mul(once.list.n, outer, &pieces) || pieces > INT32_MAX / 2)
        return -1;
    for (int64_t k = 0; k < outer; k++)
        for (int i = 0; i < once.list.n; i++)
            add_piece(&all, k * period + once.list.at[i].lo * inner, k * period + once.list.at[i].hi * inner);
    *out = all.list.at;
    return all.list.n;
}

bool placement_is_stretch(const struct type *t, struct placement p, int rank, const struct bindings *b)
{
    int64_t outer = 1, size;
    struct interval *at;
    if (p.kind != PLACE_S || rank >= p.split->ranks)
        return p.kind != PLACE_S;
    for (int d = 0; d < p.dim; d++)
        if (!eval_size(t->dim[d], b, &size) || !i64_mul(outer, size, &outer))
            return false;
    struct arena *tmp = arena_new();
    int pieces = split_pieces(tmp, p.split, rank, false, b, &at);
    arena_free(tmp);
    return outer <= 1 && (pieces == 0 || pieces == 1);
}
