/* prompt_groups: rows in as many groups as the pipeline has stages. While one group is in a stage, others are in the stages before and
 * after it. */
#include "decode/decode.h"

struct prompt_groups prompt_groups_new(struct arena *a, const struct stage *s, struct rows *first, int64_t rows)
{
    struct prompt_groups all = {.n = s->pipeline ? pipeline_stages(s->pipeline) : 1};
    all.n = rows < all.n ? (int)rows : all.n;
    all.at = NEWN(a, struct prompt_group, all.n);
    for (int k = 0; k < all.n; k++)
        all.at[k] = (struct prompt_group){k ? rows_beside(a, first) : first, rows * k / all.n, rows * (k + 1) / all.n, 0, false};
    return all;
}

/* Takes the results of the group's last run, and starts its next part of a prompt. False: all its rows have joined. */
static bool go_on(struct prompt_group *g, int64_t *next, void (*join)(void *, struct rows *, int64_t), void *data)
{
    int64_t token;
    if (rows_finish(g->rows, &token) == ROWS_JOINED) {
        next[g->from + g->joined++] = token;
        g->joins = false;
    }
    if (g->from + g->joined == g->to)
        return false;
    if (!g->joins)
        join(data, g->rows, g->from + g->joined);
    g->joins = true;
    rows_begin_prompt(g->rows);
    return true;
}

void prompt_groups_prompts(const struct prompt_groups *all, int64_t *next, void (*join)(void *, struct rows *, int64_t), void *data)
{
    for (bool more = true; more;) {
        more = false;
        for (int k = 0; k < all->n; k++)
            more = go_on(&all->at[k], next, join, data) || more;
    }
}

void prompt_groups_free(const struct prompt_groups *all)
{
    for (int k = all->n - 1; k >= 0; k--)
        rows_free(all->at[k].rows);
}
