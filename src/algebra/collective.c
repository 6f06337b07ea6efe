/* collective: the kinds of collectives, and the single reshard from one placement to another. */
#include "algebra/algebra.h"

#include <string.h>

const char *collective_name(enum collective kind)
{
#define NAME(constant, op) [COLL_##constant] = op,
    static const char *const names[] = {COLLECTIVES(NAME)};
#undef NAME
    require(kind > COLL_NONE && (size_t)kind < sizeof names / sizeof *names);
    return names[kind];
}

enum collective collective_parse(const char *op)
{
#define IS(constant, name)     \
    if (strcmp(op, name) == 0) \
        return COLL_##constant;
    COLLECTIVES(IS)
#undef IS
    return COLL_NONE;
}

static struct transition from_sharded(struct placement from, struct placement to)
{
    if (to.kind == PLACE_R)
        return (struct transition){from.split->cover, COLL_ALLGATHER};
    return (struct transition){to.kind == PLACE_S && from.split->cover, from.dim == to.dim ? COLL_REDISTRIBUTE : COLL_ALLTOALL};
}

static struct transition from_partial(struct placement to)
{
    if (to.kind == PLACE_R)
        return (struct transition){true, COLL_ALLREDUCE};
    return (struct transition){to.kind == PLACE_S && to.split->partition, COLL_REDUCESCATTER};
}

struct transition placement_transition(struct placement from, struct placement to)
{
    if (placement_eq(from, to))
        return (struct transition){true, COLL_NONE};
    if (from.kind == PLACE_R)
        return (struct transition){to.kind != PLACE_P || to.op == RED_SUM, COLL_NONE};
    return from.kind == PLACE_P ? from_partial(to) : from_sharded(from, to);
}
