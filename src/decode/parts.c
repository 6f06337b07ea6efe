/* parts: runs a prompt in several parts, so that other rows decode between them. Some graphs compute something else in parts: tokens may
 * attend to all of their prompt, a scale may be taken over it, or sizes may not fit. No rule rules this out, so both ways are run and
 * compared. */
#include "decode/decode.h"
#include "job/io/io.h"

#include <math.h>

enum { TRIED = 24 }; /* tokens */

struct history parts_run(struct arena *a, struct stage *s, const int64_t *token, int64_t from, int64_t to)
{
    struct history h = history_empty(a, 1, to);
    for (; h.length < to; h.length++)
        history_put(&h, 0, token[h.length], true);
    history_reserve(a, &h, s);
    history_feed(&h, from, s);
    session_run(s->session, s->in, s->out);
    return h;
}

/* ---- both ways, tried ---- */

struct trial {
    struct arena *arena;
    struct comm *comm;
    struct stage *stage;
    int64_t n, token[TRIED];
    double limit;
    bool same;
};

static void forget_states(const struct trial *t)
{
    session_states_compose(t->stage->session, NULL, 0, 0, NULL);
}

/* The scores behind the last token, as far as this rank has them; where the graph chooses, its choice. */
static struct scored_token *scores_behind(const struct trial *t, const struct history *h, int64_t *n)
{
    struct row_scores scores = row_scores_of(t->arena, t->comm, t->stage, h);
    struct scored_token *all = NEWN(t->arena, struct scored_token, scores.columns + 1);
    *n = t->stage->chosen ? 1 : scores.columns;
    if (t->stage->chosen)
        all[0] = row_scores_best(&scores, 0);
    else
        row_scores_read(&scores, 0, all);
    return all;
}

/* A score that is no number is like no other. */
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

static void try_both(void *trial)
{
    struct trial *t = trial;
    int64_t n, m, half = t->n / 2 + 1;
    forget_states(t);
    struct history h = parts_run(t->arena, t->stage, t->token, 0, t->n);
    const struct scored_token *whole = scores_behind(t, &h, &n);
    forget_states(t);
    (void)parts_run(t->arena, t->stage, t->token, 0, half);
    h = parts_run(t->arena, t->stage, t->token, half, t->n);
    const struct scored_token *parts = scores_behind(t, &h, &m);
    t->same = n == m && are_close(t, whole, parts, n);
}

bool parts_agree(struct comm *comm, struct stage *s, const struct job_options *o, int64_t vocabulary, int64_t context)
{
    double rel = compare_tolerance(s->graph, o).rel;
    struct trial t = {.arena = arena_new(), .comm = comm, .stage = s, .n = context - 1 < TRIED ? context - 1 : TRIED};
    const char *failure = NULL;
    int64_t differ, all;
    t.limit = fmax(rel, 1e-4);
    for (int64_t i = 0; i < t.n; i++)
        t.token[i] = (13 + 7919 * i) % vocabulary;
    if (t.n > 3)
        failure = diag_try(t.arena, try_both, &t);
    differ = all = !t.same;
    comm->id = 0;
    comm->name = "prompts in parts";
    if (comm->size > 1)
        comm->allreduce(comm, &differ, &all, 1, DT_I64, RED_MAX);
    explain("%s: prompts run %s%s%s", s->path, all ? "whole" : "in parts", failure ? ": " : "", failure ? failure : "");
    forget_states(&t);
    arena_free(t.arena);
    return !all;
}
