/* row_scores: the scores of a row's next token. They are not gathered: with a sharded vocabulary, every rank has those of its columns. If
 * they are replicated, or the graph returns tokens, rank 0 has all. */
#include "decode/sampling/sampling.h"
#include "job/io/io.h"

#include <math.h>

bool row_scores_before(struct scored_token x, struct scored_token y)
{
    if (x.token < 0 || y.token < 0)
        return y.token < 0 && x.token >= 0;
    return x.score > y.score || (x.score == y.score && x.token < y.token);
}

static void check_fit(const struct stage *s, const struct tensor *t, int64_t batch)
{
    if (t->rank < (s->chosen ? 1 : 2) || t->rank > 3 || t->dim[s->positions_lead] != batch)
        fail("%s: output '%s' is no %s", s->path, s->logits_name,
             s->chosen ? "tokens [batch, positions]" : "logits [batch, positions, vocabulary]");
}

/* The first element of a row's position, `back` before its last token, in [batch, positions, width] or [positions, batch, width]. */
static int64_t find_position(const struct stage *s, const struct history *h, int64_t positions, int64_t width, int64_t row, int64_t back)
{
    int64_t behind = decode_find_input(s, ROLE_LAST) < 0 ? h->behind[row] : 0, last = positions - 1 - behind - back, batch = h->batch;
    if (last < 0)
        fail(
            "%s: output '%s' has only the last place and row %lld ends %lld before it: rows of unequal length can't run together; run rows "
            "of one length at a time",
            s->path, s->logits_name, (long long)row, (long long)h->behind[row]);
    return (s->positions_lead ? last * batch + row : row * positions + last) * width;
}

/* all: rank 0 has every rank's scores. */
static struct row_scores take_scores(struct arena *a, const struct stage *s, const struct history *h, bool all)
{
    const struct tensor *out = &s->out[s->logits];
    const struct output_shard shard = session_output_shard(s->session, a, s->logits, out);
    struct row_scores r = {.stage = s, .history = h};
    if (!all && !s->chosen && shard.kind == PLACE_S && shard.dim == out->rank - 1) {
        r.tensor = *out;
        r.n = shard.n;
        r.at = shard.at;
    } else {
        struct interval *whole = NEW(a, struct interval);
        r.tensor = shard.kind == PLACE_R && !out->room ? *out : session_gather(s->session, a, s->logits, out);
        *whole = (struct interval){0, r.tensor.rank > 0 ? r.tensor.dim[r.tensor.rank - 1] : 0};
        r.n = s->comm->rank == 0;
        r.at = whole;
    }
    if (r.n)
        check_fit(s, &r.tensor, h->batch);
    for (int i = 0; i < r.n; i++)
        r.columns += r.at[i].hi - r.at[i].lo;
    return r;
}

struct row_scores row_scores_of(struct arena *a, const struct stage *s, const struct history *h)
{
    return take_scores(a, s, h, false);
}

/* Rank 0 is in the first stage of a pipeline; the scores may be in another stage. */
struct row_scores row_scores_gather(struct arena *a, const struct stage *s, const struct history *h)
{
    struct row_scores r = {.stage = s, .history = h};
    if (s->logits >= 0)
        r = take_scores(a, s, h, true);
    if (!s->pipeline || s->home == 0)
        return r;
    r.tensor = pipeline_to_first(s->pipeline, a, s->logits_name, s->home, &r.tensor);
    struct interval *whole = NEW(a, struct interval);
    *whole = (struct interval){0, r.tensor.rank > 0 ? r.tensor.dim[r.tensor.rank - 1] : 0};
    r.n = pipeline_number(s->pipeline) == 0 && s->comm->rank == 0;
    r.at = whole;
    r.columns = r.n ? whole->hi : 0;
    return r;
}

/* The first element of a row's scores in [batch, positions, columns], [positions, batch, columns] or [batch, columns]; -1: none. */
static int64_t scores_start(const struct row_scores *r, int64_t row, int64_t back)
{
    const struct tensor *t = &r->tensor;
    int64_t positions = t->rank == 3 ? t->dim[!r->stage->positions_lead] : 1;
    return r->n && positions > 0 ? find_position(r->stage, r->history, positions, t->dim[t->rank - 1], row, back) : -1;
}

/* From tokens [batch], [batch, positions] or [batch, positions, ranking]; the last two also with positions first. */
static struct scored_token chosen_token(const struct row_scores *r, int64_t row, int64_t back)
{
    const struct tensor *t = &r->tensor;
    int64_t elements = r->n ? tensor_elements(t) / r->history->batch : 0, width = t->rank == 3 ? t->dim[2] : 1;
    if (elements == 0)
        return (struct scored_token){0, -1};
    return (struct scored_token){0, (int64_t)tensor_element(t, find_position(r->stage, r->history, elements / width, width, row, back))};
}

static struct scored_token score_at(const struct row_scores *r, int64_t at, int64_t token)
{
    double x = tensor_element(&r->tensor, at);
    return (struct scored_token){isnan(x) ? -INFINITY : x, token};
}

struct scored_token row_scores_best(const struct row_scores *r, int64_t row, int64_t back)
{
    struct scored_token best = {0, -1};
    if (r->stage->chosen)
        return chosen_token(r, row, back);
    int64_t at = scores_start(r, row, back);
    for (int i = 0; at >= 0 && i < r->n; i++)
        for (int64_t token = r->at[i].lo; token < r->at[i].hi; token++) {
            struct scored_token o = score_at(r, at++, token);
            if (row_scores_before(o, best))
                best = o;
        }
    return best;
}

void row_scores_read(const struct row_scores *r, int64_t row, int64_t back, struct scored_token *to)
{
    int64_t at = scores_start(r, row, back);
    for (int i = 0; i < r->n; i++)
        for (int64_t token = r->at[i].lo; token < r->at[i].hi; token++)
            *to++ = at < 0 ? (struct scored_token){-INFINITY, token} : score_at(r, at++, token);
}

int64_t row_scores_column(const struct row_scores *r, int64_t token)
{
    int64_t before = 0;
    for (int i = 0; i < r->n; before += r->at[i].hi - r->at[i].lo, i++)
        if (token >= r->at[i].lo && token < r->at[i].hi)
            return before + token - r->at[i].lo;
    return -1;
}

/* Min-heap of the n best scores, by row_scores_before; sifts o down from the root. */
static void sink(struct scored_token *heap, int64_t n, struct scored_token o)
{
    int64_t at = 0;
    for (int64_t below; (below = 2 * at + 1) < n; at = below) {
        if (below + 1 < n && row_scores_before(heap[below], heap[below + 1]))
            below++;
        if (!row_scores_before(o, heap[below]))
            break;
        heap[at] = heap[below];
    }
    heap[at] = o;
}

void row_scores_few(const struct scored_token *all, int64_t columns, int64_t n, struct scored_token *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (struct scored_token){0, -1};
    for (int64_t i = 0; i < columns; i++)
        if (row_scores_before(all[i], to[0]))
            sink(to, n, all[i]);
}

/* ---- exchange ---- */

void row_scores_exchange(struct comm *comm, struct session_collective *count, void *all, int64_t each, bool from_first)
{
    struct arena *tmp = arena_new();
    int64_t *bytes = NEWN(tmp, int64_t, comm->size), sent = comm->bytes_sent;
    double start = clock_seconds();
    for (int r = 0; r < comm->size; r++)
        bytes[r] = each;
    comm->id = 0;
    comm->name = count->name;
    if (from_first)
        comm->broadcast(comm, all, each, 0);
    else
        comm->allgatherv(comm, all, bytes);
    count->calls++;
    count->bytes += comm->bytes_sent - sent;
    count->payload += each;
    count->seconds += clock_seconds() - start;
    arena_free(tmp);
}
