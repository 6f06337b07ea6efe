/* sharded_input: inputs whose shards the ranks have set, because another run or program left them sharded. Global sizes follow from the
 * shards: an unsplit dimension has the size of every rank's shard; the split one follows from the sum over all ranks. */
#include "run/session/session.h"

#include <string.h>

/* What ranks compare: the sizes of their shards, and the content of a replicated input. */
struct shard_summary {
    int64_t dim[MAX_RANK];
    uint64_t digest;
};

static const struct shard_summary *gather_summaries(struct session *s, struct arena *a, const struct formal *f, const struct tensor *own)
{
    struct shard_summary mine = {.digest = f->place.kind == PLACE_R ? tensor_digest(a, own) : 0};
    memcpy(mine.dim, own->dim, sizeof own->dim);
    return comm_gather(s->comm, a, f->name, &mine, sizeof mine);
}

static void check_shard_type(const struct session *s, const struct formal *f, const char *file, const struct tensor *own)
{
    if (own->rank != f->type.rank || own->dtype != f->type.dtype)
        fail("%s: rank %d's shard of input '%s' is %s of %d dimensions, expected %s of %d", file, s->comm->rank, f->name,
             dtype_name(own->dtype), own->rank, dtype_name(f->type.dtype), f->type.rank);
}

static void check_summaries(const struct session *s, const struct formal *f, const char *file, const struct shard_summary *all)
{
    const struct shard_summary *own = &all[s->comm->rank];
    bool sharded = f->place.kind == PLACE_S;
    for (int k = 0; k < f->type.rank; k++)
        if (own->dim[k] != all[0].dim[k] && !(sharded && k == f->place.dim))
            fail("%s: rank %d's shard of input '%s' has %lld in dimension %d, which is not split, and rank 0's has %lld", file,
                 s->comm->rank, f->name, (long long)own->dim[k], k, (long long)all[0].dim[k]);
    if (own->digest != all[0].digest)
        fail("%s: input '%s' is replicated, and rank %d's differs from rank 0's", file, f->name, s->comm->rank);
}

/* The number of indices of a pattern of n that all ranks hold together: more than n if they overlap. */
static int64_t indices_on_all_ranks(const struct split *s, int64_t n)
{
    int64_t sum = 0;
    for (int r = 0; r < s->ranks; r++)
        for (int i = 0; i < s->count[r]; i++)
            sum += s->list[r][i].hi - s->list[r][i].lo;
    return s->partition ? n : sum;
}

/* The global size of the split dimension. */
static int64_t global_size(const struct session *s, const struct formal *f, const char *file, const struct shard_summary *all)
{
    const struct split *split = f->place.split;
    int64_t sum = 0, n = 1, held = 1, times, known;
    int d = f->place.dim;
    for (int r = 0; r < s->comm->size; r++)
        if (!i64_add(sum, all[r].dim[d], &sum))
            fail("%s: input '%s' is too large", file, f->name);
    if (!split->balanced) {
        require(dim_is_int(split->n, &n));
        held = indices_on_all_ranks(split, n);
    }
    if (!held || !i64_mul(sum, n, &times) || times % held || (dim_is_int(f->type.dim[d], &known) && times / held != known))
        fail("%s: rank %d's shard of input '%s' has %lld in dimension %d, and those of all ranks %lld: they are not %s split by %s", file,
             s->comm->rank, f->name, (long long)all[s->comm->rank].dim[d], d, (long long)sum, type_str(s->arena, &f->type),
             split_str(s->arena, split));
    return times / held;
}

struct tensor session_set_shard(struct session *s, int input, const char *file, const struct tensor *shard)
{
    const struct formal *f = &s->sig.in[input];
    struct arena *tmp = arena_new();
    check_shard_type(s, f, file, shard);
    const struct shard_summary *all = gather_summaries(s, tmp, f, shard);
    check_summaries(s, f, file, all);
    struct tensor global = *shard;
    if (f->place.kind == PLACE_S) {
        if (!s->shards)
            s->shards = NEWN(s->arena, struct input_shard, s->graph->inputs.n);
        s->shards[input] = (struct input_shard){file, *shard};
        global.dim[f->place.dim] = global_size(s, f, file, all);
    }
    arena_free(tmp);
    return global;
}

const struct tensor *sharded_input(struct session *s, int input, const struct tensor *as)
{
    const struct input_shard *own = s->shards && s->shards[input].file ? &s->shards[input] : NULL;
    const struct formal *f = &s->sig.in[input];
    if (!own)
        return NULL;
    int d = f->place.dim;
    if (own->tensor.dim[d] != as->dim[d])
        fail("%s: rank %d's shard of input '%s' has %lld in dimension %d, its split %s gives it %lld", own->file, s->comm->rank, f->name,
             (long long)own->tensor.dim[d], d, split_str(s->plan, f->place.split), (long long)as->dim[d]);
    return &own->tensor;
}
