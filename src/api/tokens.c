/* tokens: tpc_generate. Each prompt joins a batch, and its row leaves when its text ends. Rank 0 decides this for all ranks. */
#include "api/api.h"
#include "job/io/io.h"

#include <string.h>

enum { MOST_ROWS = 64 }; /* at a time; further ones wait */

struct decoding {
    struct tpc_session *session;
    const tpc_prompt *prompt;
    int rows;
    const tpc_decoding *how;
    int64_t *made;
    struct sampling sampling;
    char sentence[512]; /* what is wrong with a prompt */
};

/* State on one rank. */
struct wave {
    struct decoding *d;
    struct comm *comm;
    struct api_rank *rank;
    struct end_tokens ends;
    int n, row[MOST_ROWS];     /* the prompts of the active rows */
    int64_t made[MOST_ROWS];   /* tokens of each */
    int64_t leaves[MOST_ROWS]; /* flags; sent by rank 0 */
    int64_t next[MOST_ROWS];
    bool stopped; /* by the caller */
};

static void prepare_stage(struct comm *comm, struct tpc_session *s, struct api_rank *r)
{
    struct stage *stage = NEW(r->arena, struct stage);
    *stage = (struct stage){.path = s->path, .number = 1};
    stage_load(r->arena, comm, &s->job, stage);
    roles_find(r->arena, comm, stage, 1, &s->job);
    positions_find(r->arena, comm, &s->job, stage);
    r->vocabulary = stage->vocabulary;
    r->context = stage->positions;
    stage_prepare(r->arena, comm, &s->job, r->threads, stage, 0);
    r->rows = rows_new(r->arena, comm, stage, MOST_ROWS);
    r->stage = stage;
}

/* All ranks get the same result. */
static bool prompts_fit(struct decoding *d, const struct api_rank *r)
{
    size_t room = sizeof d->sentence;
    for (int b = 0; b < d->rows; b++) {
        const tpc_prompt *p = &d->prompt[b];
        if (r->context > 0 && (p->tokens > r->context || d->how->tokens > r->context - p->tokens + 1))
            (void)snprintf(d->sentence, room, "%s: prompt %d and what follows take %lld tokens, and there are positions for %lld%s",
                           d->session->path, b, (long long)p->tokens + (long long)d->how->tokens, (long long)r->context, r->stage->limit);
        for (int64_t i = 0; i < p->tokens && !*d->sentence; i++)
            if (p->token[i] < 0 || (r->vocabulary > 0 && p->token[i] >= r->vocabulary))
                (void)snprintf(d->sentence, room, "%s: prompt %d has token %lld, expected 0 to %lld", d->session->path, b,
                               (long long)p->token[i], (long long)r->vocabulary - 1);
    }
    return !*d->sentence;
}

/* ---- rows ---- */

/* Rank 0 hands a token to the caller. */
static void take_token(struct wave *w, int b)
{
    const tpc_decoding *how = w->d->how;
    int64_t token = w->next[b];
    w->made[b]++;
    w->leaves[b] = config_is_end(&w->ends, token) || w->made[b] == how->tokens;
    if (w->comm->rank == 0 && how->made && how->made(how->data, w->row[b], token))
        w->stopped = true;
    if (w->comm->rank == 0 || w->d->session->crew.comm)
        w->d->made[(int64_t)w->row[b] * how->tokens + w->made[b] - 1] = token;
}

static void drop_row(struct wave *w, int b)
{
    rows_leave(w->rank->rows, b);
    w->n--;
    for (int k = b; k < w->n; k++) {
        w->row[k] = w->row[k + 1];
        w->made[k] = w->made[k + 1];
    }
}

static void let_leave(struct wave *w)
{
    for (int b = 0; b < w->n; b++)
        w->leaves[b] = w->leaves[b] || w->stopped;
    comm_from_first(w->comm, "rows that end", w->leaves, (int64_t)sizeof w->leaves);
    for (int b = w->n - 1; b >= 0; b--)
        if (w->leaves[b])
            drop_row(w, b);
}

static void join_row(struct wave *w, int row)
{
    const tpc_prompt *p = &w->d->prompt[row];
    const struct row_sampling how = {.of = w->d->sampling, .number = (uint64_t)row};
    int b = w->n++;
    w->row[b] = row;
    w->made[b] = 0;
    rows_join(w->rank->rows, p->token, p->tokens, 0, &how);
    rows_begin_prompt(w->rank->rows); /* all of it: parts are not allowed */
    (void)rows_finish(w->rank->rows, &w->next[b]);
    take_token(w, b);
}

static void run_wave(struct wave *w, int first, int n)
{
    for (int i = 0; i < n; i++)
        join_row(w, first + i);
    let_leave(w);
    while (w->n > 0) {
        rows_begin_step(w->rank->rows);
        (void)rows_finish(w->rank->rows, w->next);
        for (int b = 0; b < w->n; b++)
            take_token(w, b);
        let_leave(w);
    }
}

static void decode_rows(struct comm *comm, struct decoding *d, struct api_rank *r)
{
    struct arena *tmp = arena_new();
    struct wave w = {.d = d, .comm = comm, .rank = r};
    int most = rows_alone(r->rows) ? 1 : MOST_ROWS;
    if (comm->rank == 0 && !d->how->end)
        w.ends = config_ends(tmp, &d->session->job);
    for (int i = 0; d->how->end && i < d->how->ends; i++)
        VEC_PUSH(tmp, &w.ends.list, d->how->end[i]);
    for (int first = 0; first < d->rows; first += most) {
        int64_t stop = w.stopped;
        comm_from_first(comm, "end of decoding", &stop, sizeof stop);
        if (!stop)
            run_wave(&w, first, d->rows - first < most ? d->rows - first : most);
    }
    arena_free(tmp);
}

static void generate_rank(struct comm *comm, void *decoding)
{
    struct decoding *d = decoding;
    struct api_rank *r = api_rank_of(d->session, comm);
    if (!r->stage)
        prepare_stage(comm, d->session, r);
    comm->barrier(comm);
    bool says = comm->rank == 0 || d->session->crew.comm;
    struct decoding silent = {.session = d->session, .prompt = d->prompt, .rows = d->rows, .how = d->how};
    if (prompts_fit(says ? d : &silent, r))
        decode_rows(comm, d, r);
}

/* ---- the caller ---- */

static struct sampling sampling_of(const tpc_decoding *how)
{
    const struct sampling s = {.temperature = how->temperature,
                               .top_k = how->top_k,
                               .top_p = how->top_p > 0 || how->top_p < 0 ? how->top_p : 1,
                               .min_p = how->min_p,
                               .penalty = how->repetition_penalty > 0 || how->repetition_penalty < 0 ? how->repetition_penalty : 1,
                               .seed = how->seed};
    return s;
}

static int check_decoding(const struct decoding *d)
{
    const struct sampling_fault f = sampling_fault(&d->sampling);
    if (f.key)
        return error_invalid("tpc_generate: %s: expected %s", f.key, f.expected);
    if (d->how->tokens < 1 || d->how->tokens > INT32_MAX || d->how->ends < 0 || (d->how->end == NULL && d->how->ends))
        return error_invalid("tpc_generate: expected tokens of at least 1, and a list of tokens that end a row");
    for (int b = 0; b < d->rows; b++)
        if (d->prompt[b].tokens < 1 || !d->prompt[b].token)
            return error_invalid("tpc_generate: prompt %d is empty", b);
    return TPC_OK;
}

int tpc_generate(tpc_session *s, const tpc_prompt *prompt, int rows, const tpc_decoding *how, int64_t *made)
{
    if (rows < 1 || !prompt || !how || !made)
        return error_invalid("tpc_generate: prompts, how to decode and room for tokens have to be given");
    struct decoding d = {.session = s, .prompt = prompt, .rows = rows, .how = how, .made = made, .sampling = sampling_of(how)};
    if (check_decoding(&d) != TPC_OK)
        return TPC_INVALID;
    for (int64_t i = 0; i < rows * how->tokens; i++)
        made[i] = -1;
    int status = api_do(s, generate_rank, &d);
    return status == TPC_OK && *d.sentence ? error_invalid("%s", d.sentence) : status;
}
