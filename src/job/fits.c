/* fits: rejects a model whose weights exceed this machine's memory, before they are loaded: a run that swaps is too slow to be useful. */
#include "job/job.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

/* Whether only rows of it are read, as of a table. */
static bool is_table(const struct uses *uses)
{
    bool rows = uses->n > 0;
    for (int i = 0; i < uses->n && rows; i++) {
        const struct node *n = uses->at[i].node;
        rows = n && n->op && (n->op->flags & OP_SEEDS) && !(n->op->flags & OP_PRODUCT) && uses->at[i].index == 0;
    }
    return rows;
}

static bool is_packed(const struct uses *uses)
{
    for (int i = 0; i < uses->n; i++)
        if (uses->at[i].node && uses->at[i].node->op && (uses->at[i].node->op->flags & OP_PRODUCT))
            return true;
    return false;
}

/* Weights of products are packed, and their file pages released; others are read from the file's pages. */
static struct room_need need_of(const struct graph *g)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    const bool *constant = op_load_time_constants(tmp, g);
    struct room_need sum = {0};
    for (int i = 0; i < g->values.n; i++) {
        const struct value *v = g->values.at[i];
        int64_t bytes = v->constant && uses[i].n && !is_table(&uses[i]) ? v->constant->bytes : 0;
        sum.mapped += bytes;
        sum.resident += bytes;
        sum.own += is_packed(&uses[i]) ? bytes : 0;
    }
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 1; k < 3 && op_packs_recurrent(g->nodes.at[i], constant); k++) {
            int64_t copy = op_recurrent_copy(&g->nodes.at[i]->in[k]->type);
            sum.resident += copy;
            sum.own += copy;
        }
    arena_free(tmp);
    return sum;
}

/* The average need of a rank of the group: the ranks of a machine share its memory, and stages of a model differ. */
static struct room_need mean_need(struct comm *group, struct room_need own)
{
    const double each[] = {(double)own.own, (double)own.mapped, (double)own.resident, (double)own.held};
    double all[4];
    int64_t mean[4];
    if (group->size == 1 || group->local_size < group->size)
        return own;
    group->id = 0;
    group->name = "memory that ranks need";
    group->allreduce(group, each, all, 4, DT_F64, RED_SUM);
    for (int i = 0; i < 4; i++)
        mean[i] = all[i] / group->size < 9e18 ? (int64_t)(all[i] / group->size) : INT64_MAX;
    return (struct room_need){.own = mean[0], .mapped = mean[1], .resident = mean[2], .held = mean[3]};
}

/* Rank 0 of the group goes first, so that a common error is reported once. */
static void check_in_turn(struct comm *group, struct comm *all, const char *path, const char *what, struct room_need own)
{
    const struct room_need need = mean_need(group, own);
    for (int turn = 0; turn < 2; turn++) {
        if (turn == (group->rank > 0))
            room_check(all, path, what, need);
        group->barrier(group);
    }
}

int64_t job_weight_bytes(const struct graph *g)
{
    return need_of(g).resident;
}

void job_check_memory(struct comm *all, const struct graph *g, const struct job_options *o)
{
    if (!o->force)
        check_in_turn(all, all, g->path, "weights", need_of(g));
}

void job_check_cache(struct comm *group, struct comm *all, const struct graph *g, const struct job_options *o,
                     const struct cache_need *cache)
{
    struct arena *tmp = arena_new();
    struct room_need need = cache->weights ? need_of(g) : (struct room_need){0};
    int64_t bytes = 0;
    bool possible = i64_add(cache->bytes, cache->prefixes, &bytes) && i64_add(bytes, cache->drafts, &bytes) &&
        i64_add(need.resident, bytes, &need.resident) && i64_add(need.own, bytes, &need.own);
    if (!possible)
        need.resident = need.own = INT64_MAX;
    const char *what = arena_printf(tmp, "%scaches of %lld row%s of %lld tokens%s%s", cache->weights ? "weights and " : "",
                                    (long long)cache->rows, cache->rows == 1 ? "" : "s", (long long)cache->tokens,
                                    cache->prefixes ? " and of prefixes" : "", cache->drafts ? " and the model of --draft" : "");
    if (!o->force)
        check_in_turn(group, all, g->path, what, need);
    arena_free(tmp);
}
