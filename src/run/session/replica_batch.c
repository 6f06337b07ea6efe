/* replica_batch: a dimension split over the replicas of --groups. Each replica runs the same graph on its range; the results are
 * concatenated. */
#include "run/collective/collective.h"
#include "run/run.h"

#include <string.h>

static struct replica_range range_by_speed(const struct replica_shares *s, int64_t total, int replica)
{
    struct arena *tmp = arena_new();
    int64_t *held = NEWN(tmp, int64_t, s->count), from = 0;
    shares_deal(s->count, s->speed, total, held);
    for (int r = 0; r < replica; r++)
        from += held[r];
    struct replica_range range = {from, held[replica]};
    arena_free(tmp);
    return range;
}

struct replica_range replica_range_of(const struct replica_shares *s, int64_t total, int replica)
{
    if (s->speed)
        return range_by_speed(s, total, replica);
    int64_t from = comm_share_start(total, s->count, replica);
    return (struct replica_range){from, comm_share_start(total, s->count, replica + 1) - from};
}

static struct tensor alloc_rows(struct arena *a, const struct tensor *like, int dim, int64_t count)
{
    struct tensor t = *like;
    int64_t n, bytes;
    t.dim[dim] = count;
    if (!type_sizes_product(t.dim, t.rank, &n) || !i64_mul(n, (int64_t)dtype_size(t.dtype), &bytes))
        fail("%lld rows of a tensor are too many", (long long)count);
    t.data = arena_alloc(a, (size_t)bytes + 1);
    return t;
}

struct tensor replica_slice(struct arena *a, const struct tensor *from, int dim, struct replica_range rows)
{
    struct tensor t = alloc_rows(a, from, dim, rows.count);
    struct intervals mine = intervals_range(a, rows.from, rows.from + rows.count);
    struct region r = region_of(a, from, dim, &mine, -1, NULL);
    region_pack(&r, from->data, t.data);
    return t;
}

static void check_group_sizes(const char *name, const struct tensor *all, int group, int dim)
{
    for (int k = 0; k < all[0].rank; k++)
        if (k != dim && all[group].dim[k] != all[0].dim[k])
            fail("'%s' has %lld in dimension %d in group %d and %lld in group 0, so their rows can't be joined", name,
                 (long long)all[group].dim[k], k, group, (long long)all[0].dim[k]);
}

static void unpack_rows(struct arena *a, struct tensor *global, int dim, const struct replica_range *rows, const char *block)
{
    struct intervals p = intervals_range(a, rows->from, rows->from + rows->count);
    struct region r = region_of(a, global, dim, &p, -1, NULL);
    region_unpack(&r, global->data, block);
}

struct tensor replica_gather(struct arena *a, struct comm *across, const struct replica_shares *shares, const char *name,
                             const struct tensor *own, int dim, int64_t total)
{
    if (own->dtype == DT_STRING)
        fail("'%s' holds strings, which groups can't put together: run one group", name);
    require(shares->count == across->size);
    const struct tensor *all = comm_gather(across, a, name, own, sizeof *own);
    struct tensor global = alloc_rows(a, &all[0], dim, total), packed = alloc_rows(a, &all[0], dim, total);
    int64_t *bytes = NEWN(a, int64_t, across->size), each = total ? (int64_t)tensor_bytes(&global) / total : 0, at = 0;
    for (int r = 0; r < across->size; r++) {
        struct replica_range rows = replica_range_of(shares, total, r);
        bytes[r] = rows.count * each;
        if (rows.count)
            check_group_sizes(name, all, r, dim);
    }
    for (int r = 0; r < across->rank; r++)
        at += bytes[r];
    if (bytes[across->rank])
        memcpy((char *)packed.data + at, own->data, (size_t)bytes[across->rank]);
    across->allgatherv(across, packed.data, bytes);
    at = 0;
    for (int r = 0; r < across->size; at += bytes[r++]) {
        struct replica_range rows = replica_range_of(shares, total, r);
        unpack_rows(a, &global, dim, &rows, (char *)packed.data + at);
    }
    return global;
}
