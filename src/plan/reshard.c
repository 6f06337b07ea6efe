/* How a value gets from the placement it has to the one that is wanted: one step, or two through a third placement.
 *
 *     R -> S  local slice        S -> R  AllGather       P -> R  AllReduce      P -> S  ReduceScatter
 *     S -> S' AllToAll (another dimension), Redistribute (another split of the same one)      R -> P(sum)  rank 0 keeps it
 *
 * Weights do not travel: what a rank does not hold of one it does not read. Under --sp a partial value that has the sequence dimension is never all-reduced: P -> S(sequence) -> R. */
#include "plan/space.h"

const char *reshard_name(struct placement from, struct placement to)
{
    if (from.kind == PLACE_R || placement_eq(from, to))
        return NULL;
    if (from.kind == PLACE_P)
        return to.kind == PLACE_R ? "AllReduce" : "ReduceScatter";
    if (to.kind == PLACE_R)
        return "AllGather";
    return from.dim == to.dim ? "Redistribute" : "AllToAll";
}

static bool possible(struct placement from, struct placement to)
{
    if (placement_eq(from, to))
        return true;
    if (to.kind == PLACE_P)
        return from.kind == PLACE_R && to.op == RED_SUM;
    if (from.kind == PLACE_S && !from.split->cover)
        return false;
    return from.kind != PLACE_P || to.kind != PLACE_S || to.split->partition;
}

static int64_t add(int64_t a, int64_t b)
{
    return a >= COST_NEVER || b >= COST_NEVER ? COST_NEVER : a + b;
}

static int64_t direct(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    if (placement_eq(from, to))
        return 0;
    if ((s->weight[v->id] && from.kind == PLACE_S) || dtype_is_packed(v->type.dtype) || !possible(from, to))
        return COST_NEVER;
    return add(cost_of_reshard(s, v, from, to), !s->asked[v->id] && reshard_name(from, to) ? s->unasked : 0);
}

static void consider(struct space *s, const struct value *v, struct placement from, struct placement via, struct placement to, struct reshard_path *best)
{
    int64_t cost = add(direct(s, v, from, via), direct(s, v, via, to));
    if (cost < best->cost)
        *best = (struct reshard_path){ .via = via, .has_via = true, .cost = cost };
}

struct reshard_path reshard_find(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    struct reshard_path best = { .cost = direct(s, v, from, to) };
    if (placement_eq(from, to))
        return best;
    int seq = s->sequence_on && from.kind == PLACE_P && to.kind == PLACE_R ? s->sequence[v->id] : -1;
    if (seq >= 0) {
        if (s->options->sp == SP_ON)
            best.cost = COST_NEVER;
        consider(s, v, from, placement_split(seq, split_even(s->g->alg, s->ranks, v->type.dim[seq])), to, &best);
    } else if (best.cost >= COST_NEVER && from.kind == PLACE_P && to.kind == PLACE_S) {
        consider(s, v, from, placement_whole, to, &best);
    }
    return best;
}

/* Greedy growth: the target that is cheapest to reach from what is there comes next. Exact for two targets, and for more where
 * costs grow along every chain, as these do. */
int64_t reshard_tree(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to, int *parent)
{
    bool have[64] = { false };
    int64_t total = 0;
    require(n <= 64);
    for (int round = 0; round < n; round++) {
        int64_t best = COST_NEVER + 1;
        int which = -1, source = -1;
        for (int i = 0; i < n; i++)
            for (int j = -1; !have[i] && j < n; j++) {
                if (j >= 0 && !have[j])
                    continue;
                int64_t cost = reshard_find(s, v, j < 0 ? from : to[j], to[i]).cost;
                if (cost < best) {
                    best = cost;
                    which = i;
                    source = j;
                }
            }
        have[which] = true;
        parent[which] = source;
        total = add(total, best);
    }
    return total;
}
