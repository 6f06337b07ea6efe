/* unit_gather: the exchange in a recurrent net whose hidden units are split: at every step each rank sends its own units and gets all. */
#include "run/collective/collective.h"

#include <string.h>

struct unit_gather {
    struct units units; /* first: passed to the kernel */
    struct comm *comm;
    struct buffer *blocks;
    struct intervals *of;   /* by rank */
    int64_t *count, *bytes; /* by rank: units, and bytes of the current exchange */
};

/* Gathers the blocks of all ranks, each row by row. */
static void gather_units(const struct units *units, int64_t rows, const float *const *own, float *const *all)
{
    struct unit_gather *u = (struct unit_gather *)(uintptr_t)units;
    struct comm *comm = u->comm;
    int64_t total = 0;
    for (int r = 0; r < comm->size; total += u->bytes[r++])
        u->bytes[r] = rows * u->count[r] * (int64_t)sizeof **own;
    char *at = buffer_reserve(u->blocks, (size_t)total + 1), *block = at;
    for (int r = 0; r < comm->rank; r++)
        block += u->bytes[r];
    size_t row = (size_t)u->count[comm->rank] * sizeof **own;
    for (int64_t i = 0; row && i < rows; i++, block += row)
        memcpy(block, own[i], row);
    comm->allgatherv(comm, at, u->bytes);
    for (int r = 0; r < comm->size; r++)
        for (int64_t i = 0; i < rows; i++)
            EACH (const struct interval, x, u->of[r]) {
                size_t bytes = (size_t)(x->hi - x->lo) * sizeof **all;
                memcpy(all[i] + x->lo, at, bytes);
                at += bytes;
            }
}

struct unit_gather *unit_gather_new(struct arena *a, struct comm *comm, struct buffer *blocks, const struct split *split)
{
    static const struct bindings none;
    struct unit_gather *u = NEW(a, struct unit_gather);
    *u = (struct unit_gather){.comm = comm, .blocks = blocks};
    u->of = NEWN(a, struct intervals, comm->size);
    u->count = NEWN(a, int64_t, comm->size);
    u->bytes = NEWN(a, int64_t, comm->size);
    for (int r = 0; r < comm->size; r++) {
        u->of[r] = intervals_of(a, split, r, true, &none);
        u->count[r] = intervals_extent(&u->of[r]);
    }
    u->units = (struct units){.n = u->of[comm->rank].n, .at = u->of[comm->rank].at, .gather = gather_units};
    return u;
}

const struct units *unit_gather_units(const struct unit_gather *u)
{
    return &u->units;
}
