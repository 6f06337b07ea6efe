/* argmax: picks the next token of every row: the one with the largest score at the last position, the first of equal ones. NaN counts as
 * the least score.
 *
 * Scores are not gathered. If the vocabulary is sharded, every rank sends the best of its columns. If the scores are replicated, or the
 * graph returns tokens, rank 0 does. One pair per rank and row goes to all ranks. */
#include "decode/decode.h"

#include <math.h>

struct scored_token {
    double score;
    int64_t token;
}; /* token -1: none */

static bool beats(struct scored_token x, struct scored_token y)
{
    if (x.token < 0 || y.token < 0)
        return y.token < 0 && x.token >= 0;
    return x.score > y.score || (x.score == y.score && x.token < y.token);
}

/* The best of a rank's columns, in the row that begins at element `at`. */
static struct scored_token best_of(const struct tensor *scores, int64_t at, const struct output_shard *h)
{
    struct scored_token best = {0, -1};
    for (int i = 0; i < h->n; i++)
        for (int64_t token = h->at[i].lo; token < h->at[i].hi; token++) {
            double x = tensor_element(scores, at++);
            struct scored_token o = {isnan(x) ? -INFINITY : x, token};
            if (beats(o, best))
                best = o;
        }
    return best;
}

/* True if the output puts positions before rows, as [sequence, batch, vocabulary]. */
static bool positions_lead(const struct stage *s)
{
    int i = decode_find_input(s, ROLE_TOKENS);
    const struct type *in = i >= 0 ? session_input_type(s->session, i) : NULL, *out = session_output_type(s->session, s->logits);
    return in && in->rank == 2 && out->rank > (s->chosen ? 1 : 2) && in->dim[0] != in->dim[1] && out->dim[0] == in->dim[1] &&
        out->dim[1] == in->dim[0];
}

static void check_fit(const struct stage *s, const struct tensor *t, int64_t batch, int least, const char *what)
{
    if (t->rank < least || t->rank > 3 || t->dim[positions_lead(s)] != batch)
        fail("%s: output '%s' is no %s", s->path, s->graph->outputs.at[s->logits]->name, what);
}

/* The first element of the position of a row's last token, in [batch, positions, width] or [positions, batch, width]. */
static int64_t last_position(const struct stage *s, const struct history *h, int64_t positions, int64_t width, int64_t row)
{
    int64_t last = positions - 1 - h->behind[row], batch = h->batch;
    if (last < 0)
        fail(
            "%s: output '%s' is only of the last place, and row %lld ends %lld before: rows of unequal length can't run together; run rows "
            "of one length at a time",
            s->path, s->graph->outputs.at[s->logits]->name, (long long)row, (long long)h->behind[row]);
    return (positions_lead(s) ? last * batch + row : row * positions + last) * width;
}

/* Scores [batch, positions, columns], [positions, batch, columns] or [batch, columns]. */
static void best_by_score(const struct stage *s, const struct tensor *scores, const struct output_shard *shard, const struct history *h,
                          struct scored_token *own)
{
    check_fit(s, scores, h->batch, 2, "logits [batch, positions, vocabulary]");
    int64_t positions = scores->rank == 3 ? scores->dim[!positions_lead(s)] : 1, width = scores->dim[scores->rank - 1];
    for (int64_t b = 0; b < h->batch && positions > 0; b++)
        own[b] = best_of(scores, last_position(s, h, positions, width, b), shard);
}

/* Tokens [batch], [batch, positions] or [batch, positions, ranking]; the last two also with positions first. */
static void take_chosen_tokens(const struct stage *s, const struct tensor *tokens, const struct history *h, struct scored_token *own)
{
    check_fit(s, tokens, h->batch, 1, "tokens [batch, positions]");
    int64_t row = tensor_elements(tokens) / h->batch, width = tokens->rank == 3 ? tokens->dim[2] : 1;
    for (int64_t b = 0; b < h->batch && row > 0; b++)
        own[b] = (struct scored_token){0, (int64_t)tensor_element(tokens, last_position(s, h, row / width, width, b))};
}

static void own_best(struct arena *tmp, const struct comm *comm, const struct stage *s, const struct history *history,
                     struct scored_token *own)
{
    struct tensor *out = &s->out[s->logits];
    struct output_shard h = session_output_shard(s->session, tmp, s->logits, out);
    for (int64_t b = 0; b < history->batch; b++)
        own[b].token = -1;
    if (!s->chosen && h.kind == PLACE_S && h.dim == out->rank - 1) {
        best_by_score(s, out, &h, history, own);
        return;
    }
    struct tensor whole = h.kind == PLACE_R && !out->room ? *out : session_gather(s->session, tmp, s->logits, out);
    struct interval all = {0, whole.rank > 0 ? whole.dim[whole.rank - 1] : 0};
    if (comm->rank)
        return;
    if (s->chosen)
        take_chosen_tokens(s, &whole, history, own);
    else
        best_by_score(s, &whole, &(struct output_shard){.n = 1, .at = &all}, history, own);
}

static void gather_best(struct arena *tmp, struct comm *comm, struct scored_token *all, int64_t batch, struct session_collective *count)
{
    int64_t *bytes = NEWN(tmp, int64_t, comm->size), sent = comm->bytes_sent;
    for (int r = 0; r < comm->size; r++)
        bytes[r] = batch * (int64_t)sizeof *all;
    double start = clock_seconds();
    comm->id = 0;
    comm->name = count->name;
    comm->allgatherv(comm, all, bytes);
    count->calls++;
    count->bytes += comm->bytes_sent - sent;
    count->payload += bytes[comm->rank];
    count->seconds += clock_seconds() - start;
}

void argmax_next(struct comm *comm, const struct stage *s, const struct history *h, int64_t *next, struct session_collective *count)
{
    struct arena *tmp = arena_new();
    int64_t batch = h->batch;
    struct scored_token *all = NEWN(tmp, struct scored_token, comm->size * batch);
    own_best(tmp, comm, s, h, all + comm->rank * batch);
    gather_best(tmp, comm, all, batch, count);
    for (int64_t b = 0; b < batch; b++) {
        struct scored_token best = all[b];
        for (int r = 1; r < comm->size; r++)
            if (beats(all[r * batch + b], best))
                best = all[r * batch + b];
        if (best.token < 0)
            fail("%s: output '%s' has no token for row %lld", s->path, s->graph->outputs.at[s->logits]->name, (long long)b);
        next[b] = best.token;
    }
    arena_free(tmp);
}
