/* sharding_spec: converts the sharding specs of ONNX's multi-device annotations to placements, and back.
 *
 * One part of the sharded axis is split evenly (the first shards hold one index more). Parts before it repeat that split, parts after it
 * are not split: [3:1, 64:2] is three blocks of 64, each in halves, as a fused Q, K, V is split by heads. Device i is rank i. Entry i of
 * the device list holds shard i; an entry that is a key of the group map names several devices that all hold it. Without a sharded axis,
 * and with one entry for all devices, the tensor is replicated. (onnx.proto; the proposals on multi-device execution and on its sharding
 * formalism define what shapes and operators allow.)
 *
 * Specs cannot express partial values. Two sharded axes and blocks of unequal sizes are not supported. */
#include "ir/configuration.h"
#include "plan/constrain/constrain.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The spec being read. fault: the end of a sentence. */
enum { MOST_PARTS = 64 }; /* parts of an axis: far above real ones */
struct spec {
    struct arena *arena;
    struct alg *alg;
    const struct type *type;
    const struct sharding *s;
    int ranks, axis;                        /* -1: no axis is sharded */
    const struct dim *outer, *size, *inner; /* of the axis: only `size` is split */
    int64_t shards;
    const char *fault;
};

static bool wrong(struct spec *p, const char *fault)
{
    p->fault = fault;
    return false;
}

/* ---- axes -------------------------------------------------------------------------------------------------------------------- */

static const struct dim *part_size(struct spec *p, const struct shards *part)
{
    const char *error;
    if (part->sized)
        return part->size < 1 ? NULL : dim_int(p->alg, part->size);
    const struct dim *d = part->symbol ? dim_parse(p->alg, part->symbol, 1, &error) : NULL;
    return d ? dim_rewrite(p->alg, d) : NULL;
}

/* Multiplies the given sizes; false on overflow. */
static bool spec_sizes_fit(const struct sharded_axis *a)
{
    int64_t all = 1;
    for (int i = 0; i < a->n; i++)
        if (a->part[i].sized && a->part[i].size > 0 && !i64_mul(all, a->part[i].size, &all))
            return false;
    return true;
}

/* The index of the split part; -1: none, -2: several. */
static int dealt_part(const struct sharded_axis *a)
{
    int found = -1;
    for (int i = 0; i < a->n; i++)
        if (a->part[i].count > 1)
            found = found == -1 ? i : -2;
    return found;
}

static bool read_parts(struct spec *p, const struct sharded_axis *a, int split_part, const struct dim *whole)
{
    const struct dim *all = dim_int(p->alg, 1), *outer = all, *inner = all, *size = whole;
    for (int i = 0; i < a->n; i++) {
        const struct dim *d = a->n == 1 && !a->part[i].sized && !a->part[i].symbol ? whole : part_size(p, &a->part[i]);
        if (!d)
            return wrong(p, arena_printf(p->arena, "part %d of axis %" PRId64 " has no size of 1 or more", i, a->axis));
        all = dim_mul(p->alg, all, d);
        outer = i < split_part ? dim_mul(p->alg, outer, d) : outer;
        inner = split_part >= 0 && i > split_part ? dim_mul(p->alg, inner, d) : inner;
        size = i == split_part ? d : size;
    }
    if (all != whole)
        return wrong(p,
                     arena_printf(p->arena, "axis %" PRId64 " has size %s, its parts %s", a->axis, dim_str(p->arena, whole),
                                  dim_str(p->arena, all)));
    if (split_part >= 0) {
        p->outer = outer;
        p->size = size;
        p->inner = inner;
    }
    return true;
}

static bool read_axis(struct spec *p, const struct sharded_axis *a)
{
    int64_t rank = p->type->rank, d = a->axis < 0 ? a->axis + rank : a->axis;
    int split_part = dealt_part(a);
    if (a->axis < -rank || a->axis >= rank)
        return wrong(p, arena_printf(p->arena, "axis %" PRId64 " is not one of %d", a->axis, p->type->rank));
    for (int i = 0; i < a->n; i++)
        if (a->part[i].count < 1)
            return wrong(
                p,
                arena_printf(p->arena, "axis %" PRId64 " is split into %" PRId64 " shards, expected 1 or more", a->axis, a->part[i].count));
    if (split_part == -2 || (split_part >= 0 && p->axis >= 0))
        return wrong(p, arena_printf(p->arena, "two %s are sharded, where tpc splits one", split_part == -2 ? "parts of an axis" : "axes"));
    if (a->n > MOST_PARTS || !spec_sizes_fit(a))
        return wrong(p, arena_printf(p->arena, "the parts of axis %" PRId64 " are too large", a->axis));
    if (split_part >= 0) {
        p->axis = (int)d;
        p->shards = a->part[split_part].count;
    }
    return !a->n || read_parts(p, a, split_part, p->type->dim[d]);
}

/* ---- devices ------------------------------------------------------------------------------------------------------------------- */

int sharding_entry_devices(const struct sharding *s, int i, const int64_t **out)
{
    for (int k = 0; k < s->ngroup; k++)
        if (s->group[k].key == s->device[i]) {
            *out = s->group[k].device;
            return s->group[k].n;
        }
    *out = &s->device[i];
    return 1;
}

/* Shards of each rank, ascending. */
struct device_held {
    VEC(int64_t) shard;
};

static bool read_devices(struct spec *p, struct device_held *rank)
{
    for (int i = 0; i < p->s->ndevice; i++) {
        const int64_t *device;
        int n = sharding_entry_devices(p->s, i, &device);
        if (!n)
            return wrong(p, arena_printf(p->arena, "device group %" PRId64 " is empty", p->s->device[i]));
        for (int k = 0; k < n; k++) {
            if (device[k] < 0 || device[k] >= p->ranks)
                return wrong(p, arena_printf(p->arena, "device %" PRId64 " is not one of %d", device[k], p->ranks));
            struct device_held *h = &rank[device[k]];
            if (!h->shard.n || h->shard.at[h->shard.n - 1] != i)
                VEC_PUSH(p->arena, &h->shard, i);
        }
    }
    return true;
}

static bool in_order(const struct spec *p, const struct device_held *rank)
{
    for (int r = 0; r < p->ranks; r++)
        if (rank[r].shard.n != 1 || rank[r].shard.at[0] != r)
            return false;
    return true;
}

/* Some rank holds no shard, several shards, or another than its own. */
static const struct split *split_out_of_order(struct spec *p, const struct device_held *rank)
{
    int64_t n = p->size->k, each = n / p->shards, more = n % p->shards;
    int *count = NEWN(p->arena, int, p->ranks);
    const struct interval **list = NEWN(p->arena, const struct interval *, p->ranks);
    for (int r = 0; r < p->ranks; r++) {
        struct interval *at = NEWN(p->arena, struct interval, rank[r].shard.n + 1);
        count[r] = rank[r].shard.n;
        list[r] = at;
        for (int i = 0; i < count[r]; i++) {
            int64_t k = rank[r].shard.at[i], lo = k * each + (k < more ? k : more);
            at[i] = (struct interval){lo, lo + each + (k < more)};
        }
    }
    return split_list(p->alg, p->ranks, n, count, list);
}

static const struct split *read_split(struct spec *p, const struct device_held *rank)
{
    bool ordered = p->s->ndevice == 0 ? p->shards == p->ranks : in_order(p, rank);
    if (!ordered && !dim_is_int(p->size, NULL)) {
        wrong(p,
              arena_printf(p->arena, "axis %d has a size of the run, which can only be split over all %d devices in order", p->axis,
                           p->ranks));
        return NULL;
    }
    const struct split *one = ordered ? split_even(p->alg, p->ranks, p->size) : split_out_of_order(p, rank);
    const struct split *all = split_scale(p->alg, one, p->outer, p->inner);
    if (!all)
        wrong(p, "it has too many pieces");
    return all;
}

/* ---- a spec as a placement --------------------------------------------------------------------------------------------------------- */

/* Whether one entry names all devices; a list of all devices counts, too. */
static bool is_replicated(struct spec *p, const struct device_held *rank)
{
    int holders = 0;
    for (int r = 0; r < p->ranks; r++)
        holders += p->s->ndevice == 0 || rank[r].shard.n > 0;
    if (holders < p->ranks)
        return wrong(
            p, arena_printf(p->arena, "%d of %d devices replicate it, where tpc replicates it on all or shards it", holders, p->ranks));
    return true;
}

const char *sharding_placement(struct arena *a, struct alg *alg, const struct type *type, const struct sharding *s, int ranks,
                               struct placement *out)
{
    struct spec p = {.arena = a, .alg = alg, .type = type, .s = s, .ranks = ranks, .axis = -1, .shards = 1};
    struct device_held *rank = NEWN(a, struct device_held, ranks);
    if (s->ndevice > PLAN_RANKS || s->ngroup > PLAN_RANKS)
        return arena_printf(a, "it names %d devices and %d groups, at most %d are handled", s->ndevice, s->ngroup, PLAN_RANKS);
    for (int i = 0; i < s->naxis; i++)
        if (!read_axis(&p, &s->axis[i]))
            return p.fault;
    if (!read_devices(&p, rank))
        return p.fault;
    if (p.axis < 0) {
        *out = placement_replicated;
        return is_replicated(&p, rank) ? NULL : p.fault;
    }
    if (s->ndevice ? p.shards != s->ndevice : p.shards != ranks)
        return arena_printf(a, "axis %d is split into %" PRId64 " shards, the devices are %d", p.axis, p.shards,
                            s->ndevice ? s->ndevice : ranks);
    const struct split *split = read_split(&p, rank);
    if (split)
        *out = placement_split(p.axis, split);
    return split ? NULL : p.fault;
}

/* ---- a placement as a spec --------------------------------------------------------------------------------------------------------- */

static int64_t *ranks_from(struct arena *a, int first, int n)
{
    int64_t *at = NEWN(a, int64_t, n);
    for (int i = 0; i < n; i++)
        at[i] = first + i;
    return at;
}

/* The ranks that hold a shard, which begins at lo. */
struct shard {
    int64_t lo;
    int n;
    const int64_t *rank;
};

static bool same_list(const struct split *s, int a, int b)
{
    return s->count[a] == s->count[b] && memcmp(s->list[a], s->list[b], (size_t)s->count[a] * sizeof **s->list) == 0;
}

static int by_start(const void *pa, const void *pb)
{
    const struct shard *a = pa, *b = pb;
    return (a->lo > b->lo) - (a->lo < b->lo);
}

/* Each rank holds one shard, which its neighbours may hold, too; some ranks hold none. */
static int shards_by_rank(struct arena *a, const struct split *s, struct shard *at)
{
    int n = 0;
    for (int r = 0, end; r < s->ranks; r = end) {
        for (end = r + 1; !s->balanced && end < s->ranks && same_list(s, r, end);)
            end++;
        if (s->balanced || s->count[r])
            at[n++] = (struct shard){s->balanced ? r : s->list[r][0].lo, end - r, ranks_from(a, r, end - r)};
    }
    qsort(at, (size_t)n, sizeof *at, by_start);
    return n;
}

static bool device_holds(const struct split *s, int rank, int64_t index)
{
    for (int i = 0; i < s->count[rank]; i++)
        if (s->list[rank][i].lo <= index && index < s->list[rank][i].hi)
            return true;
    return false;
}

/* n shards of this many indices each. The rank that holds the first index of a shard holds all of it. */
static int shards_by_index(struct arena *a, const struct split *s, int n, int64_t size, struct shard *at)
{
    for (int i = 0; i < n; i++) {
        int64_t *rank = NEWN(a, int64_t, s->ranks);
        at[i] = (struct shard){i * size, 0, rank};
        for (int r = 0; r < s->ranks; r++)
            if (device_holds(s, r, at[i].lo))
                rank[at[i].n++] = r;
    }
    return n;
}

static void set_devices(struct arena *a, struct sharding *s, int n, const struct shard *at)
{
    int64_t *device = NEWN(a, int64_t, n + 1);
    struct device_group *group = NEWN(a, struct device_group, n + 1);
    s->ngroup = 0;
    for (int i = 0; i < n; i++) {
        device[i] = at[i].n == 1 ? at[i].rank[0] : -1 - s->ngroup;
        if (at[i].n != 1)
            group[s->ngroup++] = (struct device_group){device[i], at[i].n, at[i].rank};
    }
    s->ndevice = n;
    s->device = device;
    s->group = group;
}

/* Of a listed split: the number of indices that always stay together, and the most often that a rank's part repeats. */
struct spec_grain {
    int64_t inner, outer;
};

static struct spec_grain spec_grain_of(const struct split *s)
{
    struct spec_grain g = {1, 1};
    if (s->balanced)
        return g;
    g.inner = s->n->k;
    for (int r = 0; r < s->ranks; r++) {
        g.outer = s->count[r] > g.outer ? s->count[r] : g.outer;
        for (int i = 0; i < s->count[r]; i++)
            g.inner = i64_gcd(i64_gcd(g.inner, s->list[r][i].lo), s->list[r][i].hi);
    }
    return g;
}

struct part_list {
    VEC(struct shards) list;
};

static void add_part(struct arena *a, struct part_list *to, const struct dim *size, int64_t count)
{
    int64_t n;
    bool sized = dim_is_int(size, &n);
    if (count > 1 || !dim_equals(size, 1))
        VEC_PUSH(a, &to->list, ((struct shards){sized, sized ? n : 0, sized ? NULL : dim_str(a, size), count}));
}

/* The axis as a product: outer, outer of the grain, the split size, inner of the grain, inner; without ones. */
static struct sharded_axis sharded_axis_of(struct arena *a, struct alg *alg, int dim, const struct split *s, struct spec_grain g,
                                           int64_t shards)
{
    struct part_list parts = {{NULL, 0, 0}};
    const struct dim *split_part = s->balanced ? s->n : dim_int(alg, s->n->k / g.outer / g.inner);
    add_part(a, &parts, s->outer, 1);
    add_part(a, &parts, dim_int(alg, g.outer), 1);
    add_part(a, &parts, split_part, shards);
    add_part(a, &parts, dim_int(alg, g.inner), 1);
    add_part(a, &parts, s->inner, 1);
    if (parts.list.n == 1)
        parts.list.at[0] = (struct shards){.count = shards};
    return (struct sharded_axis){dim, parts.list.n, parts.list.at};
}

static bool reads_as(struct arena *a, struct alg *alg, const struct type *type, struct placement at, int ranks, const struct sharding *s)
{
    struct placement read;
    return !sharding_placement(a, alg, type, s, ranks, &read) && placement_eq(read, at);
}

/* The simplest spec that reads back as the placement: shards by rank; or for a cover, in which different sets of ranks hold the shards, by
 * index. */
static bool split_sharding(struct arena *a, struct alg *alg, const struct type *type, struct placement at, int ranks, struct sharding *out)
{
    require(at.kind == PLACE_S && at.split->ranks == ranks);
    struct shard *shard = NEWN(a, struct shard, ranks);
    struct sharded_axis *axis = NEW(a, struct sharded_axis);
    struct spec_grain most = spec_grain_of(at.split);
    int forms = at.split->balanced || at.split->partition ? 4 : 8;
    out->naxis = 1;
    out->axis = axis;
    for (int form = 0; form < forms; form++) {
        struct spec_grain g = {form & 1 ? most.inner : 1, form & 2 ? most.outer : 1};
        int64_t pieces = at.split->balanced ? ranks : at.split->n->k / g.outer / g.inner;
        if (form & 4 && pieces > ranks)
            continue;
        int n = form & 4 ? shards_by_index(a, at.split, (int)pieces, g.inner, shard) : shards_by_rank(a, at.split, shard);
        set_devices(a, out, n, shard);
        *axis = sharded_axis_of(a, alg, at.dim, at.split, g, n);
        if (n > 1 && reads_as(a, alg, type, at, ranks, out))
            return true;
    }
    return false;
}

bool sharding_of_placement(struct arena *a, struct alg *alg, const struct type *type, struct placement at, int ranks, struct sharding *out)
{
    struct shard all = {0, ranks, ranks_from(a, 0, ranks)};
    *out = (struct sharding){.ndevice = 0};
    if (at.kind == PLACE_S && (at.split->reads || at.split->shares))
        return false;
    if (at.kind == PLACE_S)
        return split_sharding(a, alg, type, at, ranks, out);
    set_devices(a, out, 1, &all);
    return at.kind == PLACE_R;
}
