/* logprobs: log-probabilities of tokens, log softmax of the scores. Ranks exchange the score of each position's token and their best ones;
 * then the sums of their weights, relative to the overall best. Weights are integers (sampling_weight), so the sums, and the results, are
 * the same on any number of ranks. */
#include "decode/sampling/sampling.h"

#include <math.h>

struct finding {
    struct arena *tmp;
    struct comm *comm;
    const struct row_scores *scores;
    struct session_collective *count;
    int64_t n, each; /* positions; pairs per rank: for each position its token, then the best ones */
    const struct logprobs_place *place;
    struct scored_token *own;   /* all of one position on this rank */
    struct scored_token *pairs; /* by rank */
    int64_t *mass;              /* by rank and position */
};

/* At least one. */
static int64_t bests(const struct logprobs_place *p)
{
    return p->alternatives > 0 ? p->alternatives : 1;
}

static void find_own(const struct finding *f, const struct logprobs_place *p, struct scored_token *to)
{
    row_scores_read(f->scores, p->row, p->back, f->own);
    *to = (struct scored_token){0, -1};
    for (int64_t i = 0; i < f->scores->columns; i++)
        if (f->own[i].token == p->token)
            *to = f->own[i];
    row_scores_few(f->own, f->scores->columns, bests(p), to + 1);
}

static void exchange_pairs(struct finding *f)
{
    for (int64_t i = 0; i < f->n; i++)
        f->each += 1 + bests(&f->place[i]);
    f->pairs = NEWN(f->tmp, struct scored_token, f->comm->size * f->each);
    struct scored_token *to = f->pairs + f->comm->rank * f->each;
    for (int64_t i = 0; i < f->n; to += 1 + bests(&f->place[i++]))
        find_own(f, &f->place[i], to);
    row_scores_exchange(f->comm, f->count, f->pairs, f->each * (int64_t)sizeof *f->pairs, false);
}

/* Inserts a token into the sorted first k. */
static void insert(struct scored_token *best, int64_t *n, int64_t k, struct scored_token o)
{
    int64_t at = *n < k ? (*n)++ : k - 1;
    if (*n == k && best[k - 1].token >= 0 && !row_scores_before(o, best[k - 1]))
        return;
    for (; at > 0 && row_scores_before(o, best[at - 1]); at--)
        best[at] = best[at - 1];
    best[at] = o;
}

/* Merges all ranks' pairs for the position with this offset: scores, not yet relative to the sum. */
static void merge(const struct finding *f, const struct logprobs_place *p, int64_t offset, struct logprobs *to)
{
    *to = (struct logprobs){.token = -INFINITY};
    for (int64_t k = 0; k < LOGPROBS_MOST; k++)
        to->best[k].token = -1;
    for (int r = 0; r < f->comm->size; r++) {
        const struct scored_token *sent = f->pairs + r * f->each + offset;
        if (sent->token >= 0)
            to->token = sent->score;
        for (int64_t k = 1; k <= bests(p); k++)
            if (sent[k].token >= 0)
                insert(to->best, &to->n, bests(p), sent[k]);
    }
}

static const struct sampling plain = {.temperature = 1};

static void exchange_masses(struct finding *f, const struct logprobs *all)
{
    f->mass = NEWN(f->tmp, int64_t, f->comm->size * f->n);
    int64_t *own = f->mass + f->comm->rank * f->n;
    for (int64_t i = 0; i < f->n; i++) {
        row_scores_read(f->scores, f->place[i].row, f->place[i].back, f->own);
        for (int64_t k = 0; k < f->scores->columns; k++)
            own[i] += sampling_weight(&plain, f->own[k].score, all[i].best[0].score);
    }
    row_scores_exchange(f->comm, f->count, f->mass, f->n * (int64_t)sizeof *f->mass, false);
}

static double relative(double score, double best, double log_sum)
{
    return (score == best ? 0 : score - best) - log_sum;
}

static void make_relative(const struct finding *f, int64_t place, struct logprobs *to)
{
    double best = to->best[0].score;
    int64_t sum = 0;
    for (int r = 0; r < f->comm->size; r++)
        sum += f->mass[r * f->n + place];
    double log_sum = log((double)sum * 0x1p-40);
    to->token = relative(to->token, best, log_sum);
    for (int64_t k = 0; k < to->n; k++)
        to->best[k].score = relative(to->best[k].score, best, log_sum);
    if (f->place[place].alternatives == 0)
        to->n = 0;
}

void logprobs_find(struct comm *comm, const struct row_scores *scores, int64_t n, const struct logprobs_place *place,
                   struct session_collective *count, struct logprobs *to)
{
    struct finding f = {.tmp = arena_new(), .comm = comm, .scores = scores, .count = count, .n = n, .place = place};
    int64_t offset = 0;
    f.own = NEWN(f.tmp, struct scored_token, scores->columns + 1);
    exchange_pairs(&f);
    for (int64_t i = 0; i < n; offset += 1 + bests(&place[i++]))
        merge(&f, &place[i], offset, &to[i]);
    exchange_masses(&f, to);
    for (int64_t i = 0; i < n; i++)
        make_relative(&f, i, &to[i]);
    arena_free(f.tmp);
}

void logprobs_tell(const struct stage *s, int64_t n, const struct logprobs *found)
{
    if (s->pipeline && s->logits >= 0 && n)
        pipeline_tell(s->pipeline, found, n * (int64_t)sizeof *found);
}

void logprobs_hear(const struct stage *s, int64_t n, struct logprobs *found)
{
    if (s->pipeline && s->logits < 0 && n)
        pipeline_hear(s->pipeline, s->home, found, n * (int64_t)sizeof *found);
}

/* The numbers of the rows that request them; returns their count. */
static int64_t asking(const struct row_sampling *how, int64_t batch, int64_t *row)
{
    int64_t n = 0;
    for (int64_t b = 0; b < batch; b++)
        if (how[b].logprobs)
            row[n++] = b;
    return n;
}

void logprobs_next(const struct stage *s, const struct history *h, const struct row_sampling *how, const int64_t *next,
                   struct session_collective *count, struct logprobs *by_row)
{
    struct arena *tmp = arena_new();
    struct logprobs_place *place = NEWN(tmp, struct logprobs_place, h->batch);
    struct logprobs *found = NEWN(tmp, struct logprobs, h->batch);
    int64_t *row = NEWN(tmp, int64_t, h->batch), n = s->logits < 0 ? 0 : asking(how, h->batch, row);
    for (int64_t i = 0; i < n; i++)
        place[i] = (struct logprobs_place){.row = row[i], .token = next[row[i]], .alternatives = how[row[i]].alternatives};
    if (n) {
        const struct row_scores scores = row_scores_of(tmp, s, h);
        logprobs_find(s->comm, &scores, n, place, count, found);
    }
    for (int64_t i = 0; i < n; i++)
        by_row[row[i]] = found[i];
    logprobs_tell(s, n, found);
    arena_free(tmp);
}

void logprobs_wait(const struct stage *s, int64_t batch, const struct row_sampling *how, struct logprobs *by_row)
{
    struct arena *tmp = arena_new();
    struct logprobs *found = NEWN(tmp, struct logprobs, batch);
    int64_t *row = NEWN(tmp, int64_t, batch), n = s->logits < 0 ? asking(how, batch, row) : 0;
    logprobs_hear(s, n, found);
    for (int64_t i = 0; i < n; i++)
        by_row[row[i]] = found[i];
    arena_free(tmp);
}
