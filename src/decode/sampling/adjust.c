/* adjust: biases and penalties of a row, in this order: a request's additions to scores of tokens; the repetition penalty, for tokens of
 * the prompt and generated ones; the frequency and presence penalties, for generated tokens
 * (https://platform.openai.com/docs/guides/text-generation). Then tokens that the row's grammar does not allow are removed. Each rank does
 * so for its own columns. */
#include "decode/sampling/sampling.h"

static bool has_penalties(const struct row_sampling *how)
{
    return how->of.penalty != 1 || how->of.presence != 0 || how->of.frequency != 0;
}

bool adjust_changes(const struct row_sampling *how)
{
    return how->biases || has_penalties(how) || how->form;
}

static void add_biases(const struct row_scores *r, const struct row_sampling *how, struct scored_token *score)
{
    for (int64_t i = 0; i < how->biases; i++) {
        int64_t k = row_scores_column(r, how->bias[i].token);
        if (k >= 0)
            score[k].score += how->bias[i].score;
    }
}

struct times {
    int64_t in_all, made;
};

/* By column. */
static struct times *count_times(struct arena *a, const struct row_scores *r, const struct history *h, int64_t row, int64_t prompts)
{
    struct times *times = NEWN(a, struct times, r->columns + 1);
    for (int64_t c = 0; c < h->length; c++) {
        int64_t at = row * h->room + c, k = h->seen[at] ? row_scores_column(r, h->token[at]) : -1;
        if (k < 0)
            continue;
        times[k].in_all++;
        times[k].made += h->position[at] >= prompts;
    }
    return times;
}

static double penalized(const struct sampling *s, struct times t, double x)
{
    if (t.in_all)
        x = x > 0 ? x / s->penalty : x * s->penalty;
    return t.made ? x - (double)t.made * s->frequency - s->presence : x;
}

static void subtract_penalties(const struct row_scores *r, const struct history *h, int64_t row, const struct row_sampling *how,
                               struct scored_token *score)
{
    struct arena *tmp = arena_new();
    const struct times *times = count_times(tmp, r, h, row, how->prompts);
    for (int64_t k = 0; k < r->columns; k++)
        score[k].score = penalized(&how->of, times[k], score[k].score);
    arena_free(tmp);
}

void adjust_scores(const struct row_scores *r, const struct history *h, int64_t row, const struct row_sampling *how,
                   struct scored_token *score)
{
    add_biases(r, how, score);
    if (has_penalties(how))
        subtract_penalties(r, h, row, how, score);
    if (how->form)
        form_mask(how->form, r, score);
}
