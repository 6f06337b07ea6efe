/* unsharded: the model of --check, which rank 0 runs in addition to its shard (tpc-run --generate --check). It is fed the tokens that the
 * ranks decode, so every step is compared after the same text, and a token that differs by rounding does not affect later comparisons.
 *
 * The scores of a step may differ as compare_relative allows. Within that, tokens differ only at near ties. */
#include "decode/decode.h"
#include "job/io/io.h"
#include "op/canon/canon.h"

#include <math.h>
#include <string.h>

/* The graphs of the model in one run. */
struct unsharded_model {
    struct arena *arena;
    struct comm *self;
    int n, ready; /* graphs that have their inputs from earlier ones */
    struct stage *stage;
};

/* Distance of scores from the unsharded model's. */
struct distance {
    double most, largest;  /* the largest difference, and the largest magnitude */
    double squares, whole; /* sums of squares of differences and magnitudes */
};

/* The first token that differs. */
struct first_other {
    int64_t row, made, position, got, want; /* made: tokens of the row before it */
    double gap;                             /* of their unsharded scores */
    struct distance scores;                 /* of this step */
};

struct unsharded {
    struct arena *arena;
    const struct job_options *options;
    const struct stage *ranks; /* their graphs, which have the given inputs */
    int n, threads;
    struct tensor **given; /* by graph of the ranks and input */
    struct unsharded_model *model;
    int64_t tokens, others;
    double worst; /* of all steps */
    struct distance all;
    struct first_other first;
    /* for another start */
    int64_t length, fed;
    int64_t *behind;
};

/* ---- the model ---- */

static struct unsharded_model *load_model(const struct unsharded *u, const struct job_options *o)
{
    struct arena *a = arena_new();
    struct unsharded_model *m = NEW(a, struct unsharded_model);
    *m = (struct unsharded_model){.arena = a, .self = comm_self(), .n = u->n, .stage = NEWN(a, struct stage, u->n)};
    struct job_options own = *o;
    own.input.text.n = 0;
    own.profile = false;
    own.trace = NULL;
    own.cache = DT_NONE;
    for (int k = 0; k < m->n; k++) {
        m->stage[k].path = o->check.text.at[o->check.text.n - u->n + k];
        m->stage[k].number = u->ranks[k].number;
        own.fixed = op_bound_inputs(u->ranks[k].graph);
        stage_load(a, m->self, &own, &m->stage[k]);
    }
    roles_find(a, m->self, m->stage, m->n, &own);
    for (int k = 0; k < m->n; k++)
        stage_prepare(a, m->self, &own, u->threads, m->stage, k);
    return m;
}

static void free_model(struct unsharded_model *m)
{
    for (int k = 0; k < m->n; k++)
        stage_free(&m->stage[k]);
    m->self->free(m->self);
    arena_free(m->arena);
}

static void give_inputs(const struct unsharded *u, const struct unsharded_model *m)
{
    for (int k = 0; k < m->n; k++)
        for (int i = 0; i < m->stage[k].graph->inputs.n; i++)
            for (int j = 0; j < u->ranks[k].graph->inputs.n; j++)
                if (strcmp(m->stage[k].graph->inputs.at[i]->name, u->ranks[k].graph->inputs.at[j]->name) == 0)
                    m->stage[k].given[i] = u->given[k][j];
}

static struct stage *run_model(struct unsharded_model *m, int k, const struct history *h, int64_t fed)
{
    if (k == m->ready)
        stage_get_ready(m->arena, m->stage, m->ready++, h);
    stage_run(&m->stage[k], h, fed);
    return &m->stage[k];
}

/* ---- scores ---- */

static const struct scored_token *read_scores(struct arena *a, const struct row_scores *r, int64_t row)
{
    struct scored_token *all = NEWN(a, struct scored_token, r->columns + 1);
    row_scores_read(r, row, 0, all);
    return all;
}

/* The distance of NaN from any number is infinite. */
static double score_difference(double x, double y)
{
    return x == y ? 0 : isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

static void add_scores(struct distance *to, const struct scored_token *x, const struct scored_token *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double d = score_difference(x[i].score, y[i].score), of = isfinite(y[i].score) ? fabs(y[i].score) : 0;
        to->most = fmax(to->most, d);
        to->largest = fmax(to->largest, of);
        to->squares += d * d;
        to->whole += of * of;
    }
}

static double relative(const struct distance *d)
{
    return d->largest > 0 ? d->most / d->largest : d->most;
}

static double root_mean_square(const struct distance *d)
{
    return sqrt(d->whole > 0 ? d->squares / d->whole : d->squares);
}

static void check_columns(const struct row_scores *x, const struct row_scores *y)
{
    if (x->columns != y->columns)
        fail("%s has scores of %lld tokens, and %s of %lld", y->stage->path, (long long)y->columns, x->stage->path, (long long)x->columns);
}

/* The distance between the scores of two runs, over rows that continue. */
static struct distance compare_scores(struct arena *a, const struct row_scores *x, const struct row_scores *y, const bool *ended)
{
    struct distance d = {0};
    check_columns(x, y);
    for (int64_t b = 0; b < x->history->batch; b++)
        if (!ended || !ended[b])
            add_scores(&d, read_scores(a, x, b), read_scores(a, y, b), x->columns);
    return d;
}

/* ---- steps ---- */

struct unsharded *unsharded_new(struct arena *a, const struct stage *ranks, int n, const struct job_options *o, int threads)
{
    struct unsharded *u = NEW(a, struct unsharded);
    *u = (struct unsharded){.arena = a, .options = o, .ranks = ranks, .n = n, .threads = threads};
    if (o->check.text.n < n)
        fail("--check: %s is one graph, and %s is one of %d: give the folder of the model", o->check.text.at[0], ranks->path, n);
    u->given = NEWN(a, struct tensor *, n);
    for (int k = 0; k < n; k++) {
        size_t bytes = (size_t)ranks[k].graph->inputs.n * sizeof *u->given[k];
        u->given[k] = memcpy(arena_alloc(a, bytes + 1), ranks[k].given, bytes);
    }
    u->model = load_model(u, o);
    give_inputs(u, u->model);
    return u;
}

void unsharded_run(struct unsharded *u, int k, const struct history *h, int64_t fed)
{
    if (u->ranks[k].decides && !u->behind) {
        u->length = h->length;
        u->fed = fed;
        u->behind = NEWN(u->arena, int64_t, h->batch);
        memcpy(u->behind, h->behind, (size_t)h->batch * sizeof *u->behind);
    }
    (void)run_model(u->model, k, h, fed);
}

static void note_other(struct unsharded *u, const struct history *h, const struct first_other *o)
{
    if (u->others++)
        return;
    u->first = *o;
    u->first.made = h->length - u->length;
    u->first.position = history_next_position(h, o->row);
}

/* For one row, both scores from the same model. */
static double score_gap(struct arena *a, const struct row_scores *y, const struct first_other *o)
{
    const struct scored_token *all = read_scores(a, y, o->row);
    bool known = o->got < y->columns && o->want < y->columns;
    return known ? score_difference(all[o->got].score, all[o->want].score) : INFINITY;
}

void unsharded_compare(struct unsharded *u, const struct row_scores *ranks, const struct row_sampling *how, const int64_t *next,
                       const bool *ended)
{
    const struct history *h = ranks->history;
    const struct stage *s = &u->model->stage[u->model->ready - 1];
    struct arena *tmp = arena_new();
    struct session_collective unused = {.name = "next tokens", .op = "AllGather"};
    int64_t *own = NEWN(tmp, int64_t, h->batch);
    struct row_scores scores = row_scores_of(tmp, s, h);
    struct distance d = {0};
    if (!s->chosen)
        d = compare_scores(tmp, ranks, &scores, ended);
    pick_next(s, h, how, own, &unused);
    for (int64_t b = 0; b < h->batch; b++) {
        struct first_other o = {.row = b, .got = next[b], .want = own[b], .scores = d};
        if (ended[b])
            continue;
        u->tokens++;
        if (own[b] == next[b])
            continue;
        o.gap = s->chosen || u->others ? 0 : score_gap(tmp, &scores, &o);
        note_other(u, h, &o);
    }
    u->worst = fmax(u->worst, relative(&d));
    u->all.squares += d.squares;
    u->all.whole += d.whole;
    arena_free(tmp);
}

/* ---- the effect of summation order ---- */

/* Runs the tokens of the history twice with different orders of sums. Splitting plays no part in it. */
static double order_noise(const struct unsharded *u, const struct history *all)
{
    struct job_options ordered = *u->options;
    ordered.deterministic = true;
    ordered.fast = false;
    struct unsharded_model *x = load_model(u, u->options), *y = load_model(u, &ordered);
    struct history h = *all;
    int64_t fed = u->fed;
    double noise = 0;
    give_inputs(u, x);
    give_inputs(u, y);
    h.behind = u->behind;
    h.length = u->length;
    for (int k = 0; h.length < all->length; k += k + 1 < u->n) {
        bool encodes = !u->ranks[k].decides, reads = decode_find_input(&x->stage[k], ROLE_TOKENS) >= 0;
        struct arena *tmp = encodes ? x->arena : arena_new();
        struct history prompt = encodes && reads ? prompt_as_given(tmp, &x->stage[k]) : h;
        const struct history *feed = encodes && !reads ? NULL : &prompt;
        const struct stage *by_x = run_model(x, k, feed, encodes ? 0 : fed), *by_y = run_model(y, k, feed, encodes ? 0 : fed);
        if (encodes)
            continue;
        struct row_scores in_x = row_scores_of(tmp, by_x, &h), in_y = row_scores_of(tmp, by_y, &h);
        struct distance d = compare_scores(tmp, &in_y, &in_x, NULL);
        noise = fmax(noise, relative(&d));
        fed = h.length++;
        h.behind = all->behind;
        arena_free(tmp);
    }
    free_model(x);
    free_model(y);
    return noise;
}

static double allowed_difference(const struct unsharded *u, const struct history *all)
{
    const struct job_options *o = u->options;
    double rel = compare_tolerance(u->ranks[u->n - 1].graph, o).rel;
    if (o->deterministic || o->rel >= 0 || u->worst <= rel)
        return rel;
    double noise = order_noise(u, all), allowed = compare_allowance(u->ranks[u->n - 1].graph, rel, noise);
    explain("%s: another order of sums changes scores by %.3g of the largest, so %.3g is allowed", u->model->stage->path, noise, allowed);
    return allowed;
}

/* ---- the verdict ---- */

static void print_other(const struct unsharded *u, const struct prompt_text *text, double allowed)
{
    struct arena *tmp = arena_new();
    const struct first_other *o = &u->first;
    double rounding = 2 * allowed * o->scores.largest;
    printf("row %lld differs first after %lld tokens, at position %lld: %s, unsharded %s", (long long)o->row, (long long)o->made,
           (long long)o->position, prompt_text_token(text, tmp, o->got), prompt_text_token(text, tmp, o->want));
    if (!u->model->stage[u->n - 1].chosen)
        printf("; their unsharded scores are %.3g apart: %s; scores differ by up to %.3g there", o->gap,
               o->gap <= rounding ? "a near tie" : "no near tie", o->scores.most);
    printf("\n");
    arena_free(tmp);
}

bool unsharded_end(struct unsharded *u, const struct history *all, const struct prompt_text *text)
{
    const struct stage *last = &u->ranks[u->n - 1];
    double allowed = allowed_difference(u, all);
    bool failed = last->chosen ? u->others > 0 : !(u->worst <= allowed);
    if (u->others)
        print_other(u, text, allowed);
    printf("%s: %lld tokens", failed ? "FAILED" : "PASSED", (long long)u->tokens);
    if (u->others)
        printf(", %lld chosen otherwise by the unsharded model that is fed the same", (long long)u->others);
    if (!last->chosen)
        printf(", worst difference %.3g in '%s', root mean square %.3g", u->worst, last->logits_name, root_mean_square(&u->all));
    printf("\n");
    free_model(u->model);
    return failed;
}
