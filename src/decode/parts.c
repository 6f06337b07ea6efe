/* parts: runs a prompt in several parts, so that other rows decode in between. Some graphs compute something else in parts: tokens may
 * attend to their whole prompt, a scale may be computed over it, or sizes may not fit. No rule excludes this, so both ways are run and
 * compared. A third way copies the columns of the first part out of the states and back: then texts with a common prefix can share them. */
#include "decode/decode.h"
#include "job/io/io.h"

#include <math.h>
#include <string.h>

enum { TRIED = 24 }; /* tokens */

struct history parts_run(struct arena *a, struct stage *s, int64_t adapter, const int64_t *token, int64_t from, int64_t to, bool all_scores)
{
    struct history h = history_empty(a, 1, to);
    h.scored = all_scores ? to - from : 1;
    h.adapter = memcpy(NEWN(a, int64_t, 1), &adapter, sizeof adapter);
    for (; h.length < to; h.length++)
        history_put(&h, 0, token[h.length], true);
    history_reserve(a, &h, s);
    history_feed(&h, from, s);
    session_run(s->session, s->in, s->out);
    return h;
}

/* ---- testing both ways ---- */

struct trial {
    struct arena *arena;
    struct comm *comm;
    struct stage *stage;
    int64_t n, half, token[TRIED];
    double limit;
    bool same, scored, kept; /* both ways have the same scores; a run has scores of all positions; columns hold all of the states */
    const struct session_columns *columns;
    const char *symbol;
    struct arena *keeper;              /* of the columns; NULL: they cannot be copied */
    void *first;                       /* of the first part */
    const struct scored_token *scores; /* after the second part, on this rank */
    int64_t nscores;
};

static void forget_states(const struct trial *t)
{
    session_states_compose(t->stage->session, NULL, 0, 0, NULL);
}

/* The scores after the last token, or `back` positions before it, as far as this rank has them; its choice if the graph chooses tokens. */
static struct scored_token *scores_behind(const struct trial *t, const struct history *h, int64_t back, int64_t *n)
{
    *n = 0;
    if (t->stage->logits < 0)
        return NULL;
    struct row_scores scores = row_scores_of(t->arena, t->stage, h);
    struct scored_token *all = NEWN(t->arena, struct scored_token, scores.columns + 1);
    *n = t->stage->chosen ? 1 : scores.columns;
    if (t->stage->chosen)
        all[0] = row_scores_best(&scores, 0, back);
    else
        row_scores_read(&scores, 0, back, all);
    return all;
}

/* NaN equals no score. */
static bool are_close(const struct trial *t, const struct scored_token *x, const struct scored_token *y, int64_t n)
{
    double most = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i].token != y[i].token || !isfinite(x[i].score) || !isfinite(y[i].score))
            return false;
        most = fmax(most, fabs(x[i].score));
        worst = fmax(worst, fabs(x[i].score - y[i].score));
    }
    return worst <= t->limit * most;
}

/* In a pipeline, the ranks with the scores decide. */
static bool has_all_positions(const struct trial *t)
{
    if (t->stage->logits < 0)
        return true;
    const struct tensor *out = &t->stage->out[t->stage->logits];
    return !t->stage->chosen && out->rank == 3 && out->dim[t->stage->positions_lead ? 0 : 1] == t->n;
}

static void take_columns(struct trial *t)
{
    if (!t->keeper)
        return;
    t->columns = session_columns_new(t->keeper, t->stage->session, t->symbol);
    t->first = arena_alloc(t->arena, (size_t)(t->half * session_columns_bytes(t->columns)));
    session_columns_read(t->columns, t->stage->session, 0, 0, t->half, t->first);
}

static const struct scored_token *run_second_part(struct trial *t, int64_t *n)
{
    const struct history h = parts_run(t->arena, t->stage, 0, t->token, t->half, t->n, false);
    return scores_behind(t, &h, 0, n);
}

static void try_both(void *trial)
{
    struct trial *t = trial;
    int64_t n, m;
    const struct scored_token *within = NULL;
    forget_states(t);
    struct history h = parts_run(t->arena, t->stage, 0, t->token, 0, t->n, true);
    const struct scored_token *whole = scores_behind(t, &h, 0, &n);
    bool all = has_all_positions(t);
    if (all)
        within = scores_behind(t, &h, t->n - t->half, &n);
    forget_states(t);
    h = parts_run(t->arena, t->stage, 0, t->token, 0, t->half, false);
    const struct scored_token *first = scores_behind(t, &h, 0, &m);
    t->scored = all && m == n && are_close(t, within, first, n);
    take_columns(t);
    t->scores = run_second_part(t, &t->nscores);
    t->same = n == t->nscores && are_close(t, whole, t->scores, n);
}

/* The same run on the same columns: all bits must be equal. */
static void try_columns(void *trial)
{
    struct trial *t = trial;
    int64_t n;
    session_columns_begin(t->columns, t->stage->session, t->half);
    session_columns_write(t->columns, t->stage->session, 0, t->half, t->first);
    const struct scored_token *again = run_second_part(t, &n);
    t->kept = n == t->nscores;
    for (int64_t i = 0; i < n && t->kept; i++)
        t->kept = again[i].token == t->scores[i].token && memcmp(&again[i].score, &t->scores[i].score, sizeof again[i].score) == 0;
}

/* If a rank of the pipeline fails, all ranks abandon the run. */
static const char *try_runs(struct trial *t, void (*runs)(void *))
{
    const char *failure = diag_try(t->arena, runs, t);
    if (t->stage->pipeline)
        pipeline_settle(t->stage->pipeline);
    return failure;
}

/* The result of one rank holds for all. */
static bool on_all(struct comm *comm, bool own)
{
    int64_t lacks = !own, all = lacks;
    comm->id = 0;
    comm->name = "prompts in parts";
    if (comm->size > 1)
        comm->allreduce(comm, &lacks, &all, 1, DT_I64, RED_MAX);
    return !all;
}

struct parts_found parts_try(struct arena *a, struct comm *comm, struct stage *s, const char *symbol, const struct job_options *o,
                             int64_t vocabulary, int64_t context)
{
    double rel = compare_tolerance(s->graph, o).rel;
    const char *own = session_states_without_columns(s->session, a, symbol), *fixed = stage_first_text(a, s, comm, own ? own : "");
    const char *failure = NULL;
    struct trial t = {.arena = arena_new(), .comm = comm, .stage = s, .n = context - 1 < TRIED ? context - 1 : TRIED, .symbol = symbol};
    struct parts_found found = {0};
    t.half = t.n / 2 + 1;
    t.keeper = *fixed ? NULL : a;
    t.limit = fmax(rel, 1e-4);
    for (int64_t i = 0; i < t.n; i++)
        t.token[i] = (13 + 7919 * i) % vocabulary;
    if (t.n > 3)
        failure = try_runs(&t, try_both);
    found.agree = on_all(comm, t.same);
    found.all_scores = on_all(comm, t.scored) && found.agree;
    explain("%s: prompts run %s%s%s", s->path, found.agree ? "in parts" : "whole", failure ? ": " : "", failure ? failure : "");
    if (found.agree && !*fixed)
        failure = try_runs(&t, try_columns);
    found.columns = on_all(comm, t.kept) ? t.columns : NULL;
    if (!found.columns)
        found.why = !found.agree ? "prompts run whole"
            : *fixed             ? fixed
            : failure            ? arena_strdup(a, failure)
                                 : "its states are more than their columns";
    forget_states(&t);
    arena_free(t.arena);
    return found;
}
