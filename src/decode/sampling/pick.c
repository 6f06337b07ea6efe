/* pick: picks the next token of every row, or of several positions of each. Scores are not gathered: ranks exchange their best ones.
 *
 * The best token, or the best one with its draw added, needs one pair per rank and row. If only some scores count (top-k, top-p, min-p),
 * every rank sends as many of its best ones as may matter, and for top-p the sum of the weights of all its columns. Together they are
 * complete down to the last token sent by any rank that has more. From these, rank 0 selects those that count, in order of scores. If it
 * needs more tokens, all ranks send more. So the result is exact, and the same on any number of ranks. */
#include "decode/sampling/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 64, MOST_AT_FIRST = 4096, MORE = 8, UNDECIDED = -2 };

struct pick {
    struct arena *tmp;
    struct comm *comm;
    const struct row_sampling *how; /* by row; NULL: the best token for all */
    struct row_scores scores;
    const struct history *history;
    struct session_collective *count;
    int64_t n; /* positions that get tokens, in order, row by row */
    int64_t *next;
    int64_t *slots;             /* by position: pairs that a rank sends in this round; 0: the position has its token */
    struct scored_token **own;  /* by position: all scores of this rank, if they are read more than once */
    struct scored_token *pairs; /* by rank, position and slot */
    int64_t *mass;              /* by position */
};

static int64_t row_of(const struct pick *p, int64_t place)
{
    return place / p->history->picked;
}

/* The number of positions before the row's last token. */
static int64_t back_of(const struct pick *p, int64_t place)
{
    return p->history->picked - 1 - place % p->history->picked;
}

/* The tokens before the position. */
static struct history before_place(const struct pick *p, int64_t place)
{
    struct history h = *p->history;
    h.length -= back_of(p, place);
    return h;
}

static const struct row_sampling *how_of_place(const struct pick *p, int64_t place)
{
    static const struct row_sampling best = {.of = {.top_p = 1, .penalty = 1}};
    return p->how ? &p->how[row_of(p, place)] : &best;
}

static const struct sampling *sampling_of_place(const struct pick *p, int64_t place)
{
    return &how_of_place(p, place)->of;
}

static struct draws draws_of_place(const struct pick *p, int64_t place)
{
    const struct history before = before_place(p, place);
    return sampling_draws(how_of_place(p, place), history_next_position(&before, row_of(p, place)));
}

/* ---- this rank's scores ---- */

static struct scored_token *read_place(struct pick *p, int64_t place)
{
    const struct history before = before_place(p, place);
    if (p->own[place])
        return p->own[place];
    p->own[place] = NEWN(p->tmp, struct scored_token, p->scores.columns + 1);
    row_scores_read(&p->scores, row_of(p, place), back_of(p, place), p->own[place]);
    if (adjust_changes(how_of_place(p, place)))
        adjust_scores(&p->scores, &before, row_of(p, place), how_of_place(p, place), p->own[place]);
    return p->own[place];
}

/* This rank's best token, with its draw if tokens are drawn. */
static struct scored_token own_best(struct pick *p, int64_t place)
{
    const struct sampling *rule = sampling_of_place(p, place);
    if (rule->temperature <= 0 && !adjust_changes(how_of_place(p, place)))
        return row_scores_best(&p->scores, row_of(p, place), back_of(p, place));
    const struct scored_token *all = read_place(p, place);
    struct draws d = {0};
    struct scored_token best = {-INFINITY, -1};
    if (rule->temperature > 0)
        d = draws_of_place(p, place);
    for (int64_t i = 0; i < p->scores.columns; i++) {
        struct scored_token o = all[i];
        if (rule->temperature > 0)
            o.score = sampling_draw(&d, o.token, o.score, best.score);
        if (row_scores_before(o, best))
            best = o;
    }
    return best;
}

static void own_few(struct pick *p, int64_t place, int64_t n, struct scored_token *to)
{
    row_scores_few(read_place(p, place), p->scores.columns, n, to);
}

/* ---- exchange ---- */

static void exchange(struct pick *p, void *all, int64_t each, bool from_first)
{
    row_scores_exchange(p->comm, p->count, all, each, from_first);
}

/* The number of pairs that a rank sends in this round. */
static int64_t slots_of_all(const struct pick *p)
{
    int64_t n = 0;
    for (int64_t b = 0; b < p->n; b++)
        n += p->slots[b];
    return n;
}

static void exchange_pairs(struct pick *p)
{
    int64_t each = slots_of_all(p);
    p->pairs = NEWN(p->tmp, struct scored_token, p->comm->size * each);
    struct scored_token *to = p->pairs + p->comm->rank * each;
    for (int64_t b = 0; b < p->n; to += p->slots[b++]) {
        if (p->slots[b] && sampling_filters(sampling_of_place(p, b)))
            own_few(p, b, p->slots[b], to);
        else if (p->slots[b])
            *to = own_best(p, b);
    }
    exchange(p, p->pairs, each * (int64_t)sizeof *p->pairs, false);
}

/* ---- positions where only some scores count ---- */

struct candidates {
    int64_t n, certain; /* the best `certain` of the whole vocabulary are the first ones here */
    bool complete;      /* these are all */
    struct scored_token *at;
};

static int by_rank(const void *x, const void *y)
{
    const struct scored_token *a = x, *b = y;
    return row_scores_before(*a, *b) ? -1 : row_scores_before(*b, *a);
}

/* offset: of the position's slots within a rank's. */
static struct candidates candidates_of(const struct pick *p, int64_t place, int64_t offset)
{
    int64_t each = slots_of_all(p), slots = p->slots[place];
    struct candidates c = {.complete = true, .at = NEWN(p->tmp, struct scored_token, p->comm->size * slots)};
    struct scored_token bound = {0, -1};
    for (int r = 0; r < p->comm->size; r++) {
        const struct scored_token *sent = p->pairs + r * each + offset;
        struct scored_token last = {0, -1};
        bool full = true;
        for (int64_t k = 0; k < slots; k++) {
            full = full && sent[k].token >= 0;
            if (sent[k].token >= 0)
                c.at[c.n++] = sent[k];
            if (last.token < 0 || row_scores_before(last, sent[k]))
                last = sent[k];
        }
        c.complete = c.complete && !full;
        if (full && row_scores_before(last, bound))
            bound = last;
    }
    qsort(c.at, (size_t)c.n, sizeof *c.at, by_rank);
    while (c.certain < c.n && (bound.token < 0 || !row_scores_before(bound, c.at[c.certain])))
        c.certain++;
    return c;
}

static int64_t own_mass(struct pick *p, int64_t place, double best)
{
    const struct scored_token *all = read_place(p, place);
    int64_t sum = 0;
    for (int64_t i = 0; i < p->scores.columns; i++)
        sum += sampling_weight(sampling_of_place(p, place), all[i].score, best);
    return sum;
}

/* The sum of weights of the whole vocabulary, once for each position that needs it. */
static void exchange_masses(struct pick *p, const struct candidates *c)
{
    int64_t places = p->n, *all = NEWN(p->tmp, int64_t, p->comm->size * places);
    bool any = false;
    for (int64_t b = 0; b < places; b++) {
        const struct sampling *rule = sampling_of_place(p, b);
        if (!c[b].n || p->mass[b] || rule->top_k || rule->top_p >= 1)
            continue;
        any = true;
        all[p->comm->rank * places + b] = own_mass(p, b, c[b].at[0].score);
    }
    if (!any)
        return;
    exchange(p, all, places * (int64_t)sizeof *all, false);
    for (int64_t i = 0; i < p->comm->size * places; i++)
        p->mass[i % places] += all[i];
}

/* How many of the first candidates count; UNDECIDED: more must be known. */
static int64_t count_kept(const struct sampling *rule, const struct candidates *c, int64_t mass)
{
    int64_t most = rule->top_k && rule->top_k < c->n ? rule->top_k : c->n, kept = 0;
    bool all = c->complete || (rule->top_k && rule->top_k <= c->n);
    if (rule->top_k && (most > c->certain || !all))
        return UNDECIDED;
    double best = c->at[0].score, total = (double)mass;
    if (rule->top_k)
        for (int64_t i = 0; i < most; i++)
            total += (double)sampling_weight(rule, c->at[i].score, best);
    for (int64_t sum = 0; kept < most; kept++) {
        int64_t weight = sampling_weight(rule, c->at[kept].score, best);
        if (kept >= c->certain)
            return UNDECIDED;
        if (kept && (((double)sum >= rule->top_p * total && rule->top_p < 1) || (double)weight < rule->min_p * 0x1p40))
            return kept;
        sum += weight;
    }
    return all ? kept : UNDECIDED;
}

static int64_t draw_kept(const struct pick *p, int64_t place, const struct candidates *c)
{
    int64_t kept = count_kept(sampling_of_place(p, place), c, p->mass[place]);
    const struct draws d = draws_of_place(p, place);
    struct scored_token best = {-INFINITY, kept == UNDECIDED ? UNDECIDED : -1};
    for (int64_t i = 0; i < kept; i++) {
        struct scored_token o = {sampling_draw(&d, c->at[i].token, c->at[i].score, best.score), c->at[i].token};
        if (row_scores_before(o, best))
            best = o;
    }
    return best.token;
}

/* Only rank 0 draws, because math libraries may round differently. */
static void draw_places(struct pick *p)
{
    int64_t places = p->n, offset = 0;
    struct candidates *c = NEWN(p->tmp, struct candidates, places);
    bool any = false;
    for (int64_t b = 0; b < places; offset += p->slots[b++])
        if (p->slots[b] && sampling_filters(sampling_of_place(p, b))) {
            c[b] = candidates_of(p, b, offset);
            any = true;
        }
    if (!any)
        return;
    exchange_masses(p, c);
    for (int64_t b = 0; p->comm->rank == 0 && b < places; b++)
        if (c[b].n)
            p->next[b] = draw_kept(p, b, &c[b]);
    if (p->comm->size > 1)
        exchange(p, p->next, places * (int64_t)sizeof *p->next, true);
}

/* ---- rounds ---- */

static void take_best(struct pick *p)
{
    int64_t each = slots_of_all(p), offset = 0;
    for (int64_t b = 0; b < p->n; offset += p->slots[b++]) {
        struct scored_token best = {0, -1};
        for (int r = 0; p->slots[b] && r < p->comm->size; r++)
            if (row_scores_before(p->pairs[r * each + offset], best))
                best = p->pairs[r * each + offset];
        if (p->slots[b])
            p->next[b] = best.token;
    }
}

static int64_t first_slots(const struct sampling *rule)
{
    if (!sampling_filters(rule))
        return 1;
    return rule->top_k == 0 ? FEW : rule->top_k < MOST_AT_FIRST ? rule->top_k : MOST_AT_FIRST;
}

static void check_scores(const struct pick *p)
{
    const struct stage *s = p->scores.stage;
    for (int64_t b = 0; b < p->n && s->chosen; b++)
        if (sampling_of_place(p, b)->temperature > 0 || adjust_changes(how_of_place(p, b)))
            fail("%s: output '%s' has tokens that the graph chose, and sampling needs scores", s->path, s->logits_name);
}

static void pick_here(const struct stage *s, const struct history *h, const struct row_sampling *how, int64_t *next,
                      struct session_collective *count)
{
    struct arena *tmp = arena_new();
    struct pick p = {.tmp = tmp, .comm = s->comm, .how = how, .history = h, .count = count, .n = h->batch * h->picked, .next = next};
    p.scores = row_scores_of(tmp, s, h);
    p.slots = NEWN(tmp, int64_t, p.n);
    p.own = NEWN(tmp, struct scored_token *, p.n);
    p.mass = NEWN(tmp, int64_t, p.n);
    check_scores(&p);
    for (int64_t b = 0; b < p.n; b++)
        p.slots[b] = first_slots(sampling_of_place(&p, b));
    while (slots_of_all(&p)) {
        exchange_pairs(&p);
        take_best(&p);
        draw_places(&p);
        for (int64_t b = 0; b < p.n; b++)
            p.slots[b] = next[b] == UNDECIDED ? p.slots[b] * MORE : 0;
    }
    for (int64_t b = 0; b < p.n; b++)
        if (next[b] < 0 && !how_of_place(&p, b)->form)
            fail("%s: output '%s' has no token for row %lld", s->path, s->logits_name, (long long)row_of(&p, b));
    arena_free(tmp);
}

void pick_next(const struct stage *s, const struct history *h, const struct row_sampling *how, int64_t *next,
               struct session_collective *count)
{
    if (s->logits >= 0)
        pick_here(s, h, how, next, count);
    if (s->pipeline && s->logits >= 0)
        pipeline_tell(s->pipeline, next, h->batch * h->picked * (int64_t)sizeof *next);
}

void pick_wait(const struct stage *s, int64_t n, int64_t *next)
{
    if (s->pipeline && s->logits < 0)
        pipeline_hear(s->pipeline, s->home, next, n * (int64_t)sizeof *next);
}
