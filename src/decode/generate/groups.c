/* groups: the rows of a pipeline in as many groups as it has stages. While one group is in a stage, others are in the stages before and
 * after it. A group starts its next step as soon as its tokens are known, and prompts run in parts if the graph allows. */
#include "decode/generate/generate.h"

#include <string.h>

struct groups {
    struct decoder *d;
    struct stage *stage;
    struct prompt_groups of;
};

/* Rows that continue from a given state, or have given positions, run together as given. So do rows that --check compares step by step, and
 * rows with a form. */
static bool may_group(const struct decoder *d, const struct stage *s)
{
    if (!s->pipeline || d->form.all || d->options->check.text.n)
        return false;
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (s->given[i].data && s->role[i] != ROLE_TOKENS && s->role[i] != ROLE_MASK)
            return false;
    return true;
}

/* ---- prompts ---- */

/* The tokens that the mask shows; returns their number. */
static int64_t prompt_of(const struct history *h, int64_t row, int64_t *token)
{
    int64_t n = 0;
    for (int64_t c = row * h->room; c < row * h->room + h->length; c++)
        if (h->seen[c])
            token[n++] = h->token[c];
    return n;
}

static void join_row(void *decoder, struct rows *rows, int64_t row)
{
    struct decoder *d = decoder;
    struct arena *tmp = arena_new();
    int64_t *token = NEWN(tmp, int64_t, d->history.length);
    int64_t n = prompt_of(&d->history, row, token);
    rows_join(rows, token, n, 0, &d->how[row]);
    arena_free(tmp);
}

/* ---- steps ---- */

/* Whether there are positions for the tokens so far and for one in flight. */
static bool has_positions(const struct groups *all)
{
    const struct history *h = &all->d->history;
    for (int64_t b = 0; all->stage->positions > 0 && b < h->batch; b++)
        if (history_next_position(h, b) + 1 > all->stage->positions)
            return false;
    return true;
}

static void run_steps(const struct groups *all)
{
    struct decoder *d = all->d;
    bool ended = generate_take_tokens(d);
    int64_t most = d->options->generate;
    bool begun = !ended && d->made < most;
    if (begun)
        generate_check_positions(d, all->stage, &d->history);
    for (int k = 0; begun && k < all->of.n; k++)
        rows_begin_step(all->of.at[k].rows);
    while (begun && !ended) {
        begun = d->made + 1 < most && has_positions(all);
        for (int k = 0; k < all->of.n; k++) {
            (void)rows_finish(all->of.at[k].rows, d->next + all->of.at[k].from);
            if (begun)
                rows_begin_step(all->of.at[k].rows);
        }
        ended = generate_take_tokens(d);
        if (!ended && d->made < most)
            generate_check_positions(d, all->stage, &d->history);
    }
    for (int k = 0; k < all->of.n; k++) /* steps of rows that had ended */
        (void)rows_finish(all->of.at[k].rows, d->next + all->of.at[k].from);
}

bool generate_in_groups(struct decoder *d, struct arena *a)
{
    struct stage *s = &d->stage[0];
    if (!may_group(d, s))
        return false;
    double start = clock_seconds();
    generate_start(d, a, 0);
    generate_check_positions(d, s, &d->history);
    struct rows *first = rows_new(a, d->comm, s, d->history.batch);
    if (rows_alone(first)) { /* they run together, as given */
        rows_free(first);
        return false;
    }
    if (d->history.length > PREFIX_BLOCK)
        (void)rows_try_parts(first, d->options, decode_vocabulary(a, s), s->positions > 0 ? s->positions : INT32_MAX);
    const struct groups all = {d, s, prompt_groups_new(a, s, first, d->history.batch)};
    prompt_groups_prompts(&all.of, d->next, join_row, d);
    double made = clock_seconds();
    run_steps(&all);
    d->first = made - start;
    d->rest = clock_seconds() - made;
    prompt_groups_free(&all.of);
    return true;
}
