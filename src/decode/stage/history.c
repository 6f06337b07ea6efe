/* history: the tokens of a decode loop, one row per batch row, with their mask and positions. Inputs of a graph are columns of these
 * tables: those that the KV cache lacks or, for a mask, all. */
#include "decode/stage/stage.h"
#include "job/io/io.h"

#include <string.h>

struct history history_empty(struct arena *a, int64_t batch, int64_t room)
{
    struct history h = {.batch = batch, .room = room, .scored = 1, .picked = 1};
    int64_t n;
    if (!i64_mul(batch, room, &n))
        fail("%lld rows of %lld tokens are too many", (long long)batch, (long long)room);
    h.token = NEWN(a, int64_t, n);
    h.seen = NEWN(a, int64_t, n);
    h.position = NEWN(a, int64_t, n);
    h.behind = NEWN(a, int64_t, batch);
    return h;
}

void history_put(struct history *h, int64_t row, int64_t token, bool seen)
{
    int64_t at = row * h->room + h->length;
    h->token[at] = token;
    h->seen[at] = seen;
    h->position[at] = h->length == 0 ? 0 : h->position[at - 1] + (h->seen[at - 1] != 0);
}

void history_add(struct history *h, const int64_t *next)
{
    require(h->length < h->room);
    for (int64_t b = 0; b < h->batch; b++)
        history_put(h, b, next[b], true);
    h->length++;
    memset(h->behind, 0, (size_t)h->batch * sizeof *h->behind);
}

int64_t history_next_position(const struct history *h, int64_t row)
{
    int64_t last = row * h->room + h->length - 1;
    return h->position[last] + (h->seen[last] != 0);
}

struct history history_start(struct arena *a, int64_t batch, int64_t token, int64_t more)
{
    struct history h = history_empty(a, batch, more + 1);
    for (int64_t b = 0; b < batch; b++)
        history_put(&h, b, token, true);
    h.length = 1;
    return h;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------------------------- */

static bool follows_from_tokens(const struct stage *s, int i)
{
    return s->role[i] != ROLE_CONSTANT && s->role[i] != ROLE_STATE && s->role[i] != ROLE_ELSEWHERE;
}

/* Sets the sizes of an input. Rows are its second last dimension, which may be fixed at 1. Earlier dimensions repeat the rows. */
static void size_input(const struct history *h, const struct type *t, int64_t columns, struct tensor *to)
{
    to->dtype = t->dtype;
    to->rank = t->rank;
    for (int d = 0; d < t->rank; d++)
        if (!dim_is_int(t->dim[d], &to->dim[d]))
            to->dim[d] = h->batch;
    if (t->rank > 0)
        to->dim[t->rank - 1] = columns;
}

/* An input with `columns` columns unless it has its own: ROLE_CACHED has the declared ones, ROLE_LAST is [scored] or [batch, scored, 1]. */
static void size_input_of(const struct history *h, const struct stage *s, int i, int64_t columns, struct tensor *to)
{
    const struct type *t = session_input_type(s->session, i);
    if (s->role[i] == ROLE_CACHED && t->rank > 0)
        (void)dim_is_int(t->dim[t->rank - 1], &columns);
    size_input(h, t, columns, to);
    if (s->role[i] == ROLE_ADAPTER)
        to->dim[0] = h->batch;
    else if (s->role[i] == ROLE_LAST && t->rank == 1)
        to->dim[0] = h->scored;
    else if (s->role[i] == ROLE_LAST) {
        to->dim[1] = h->scored;
        to->dim[2] = 1;
    }
}

/* Fails if the graph has a fixed batch size that is not the prompt's. */
static void check_batch(const struct history *h, const struct stage *s)
{
    int tokens = decode_find_input(s, ROLE_TOKENS);
    const struct type *t = tokens >= 0 ? session_input_type(s->session, tokens) : NULL;
    int64_t rows;
    if (t && t->rank == 2 && dim_is_int(t->dim[0], &rows) && rows != h->batch)
        fail("%s: input '%s' takes %lld row%s of tokens, found %lld", s->path, s->graph->inputs.at[tokens]->name, (long long)rows,
             rows == 1 ? "" : "s", (long long)h->batch);
}

void history_reserve(struct arena *a, const struct history *h, struct stage *s)
{
    check_batch(h, s);
    for (int i = 0; i < s->graph->inputs.n; i++) {
        const struct type *t = session_input_type(s->session, i);
        int64_t n, bytes;
        if (!follows_from_tokens(s, i))
            continue;
        size_input_of(h, s, i, h->room, &s->in[i]);
        if (!type_sizes_product(s->in[i].dim, t->rank, &n) || !i64_mul(n, (int64_t)dtype_size(t->dtype), &bytes))
            fail("%s: input '%s' is too large for %lld rows of %lld tokens", s->path, s->graph->inputs.at[i]->name, (long long)h->batch,
                 (long long)h->room);
        s->in[i].data = arena_alloc(a, (size_t)bytes + 1);
    }
}

/* Writes columns [from, length) of a table; table NULL: the column numbers. */
static void write_columns(const struct history *h, const int64_t *table, int64_t from, struct tensor *to)
{
    int64_t n = tensor_elements(to), columns = h->length - from, rows = to->rank > 1 ? to->dim[to->rank - 2] : 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t column = from + i % columns, row = i / columns % rows;
        tensor_put(to, i, (double)(table ? table[row * h->room + column] : column));
    }
}

static void write_same(bool value, struct tensor *to)
{
    int64_t n = tensor_elements(to);
    for (int64_t i = 0; i < n; i++)
        tensor_put(to, i, value);
}

static void write_adapters(const struct history *h, struct tensor *to)
{
    for (int64_t b = 0; b < h->batch; b++)
        tensor_put(to, b, h->adapter ? (double)h->adapter[b] : 0);
}

/* Per row if it has rows, else for all. */
static void write_last(const struct history *h, int64_t fed, struct tensor *to)
{
    int64_t n = tensor_elements(to);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / h->scored, back = h->scored - 1 - i % h->scored;
        tensor_put(to, i, (double)(h->length - fed - 1 - back - h->behind[row]));
    }
}

static const struct dim *last_size(const struct stage *s, int i)
{
    const struct type *t = session_input_type(s->session, i);
    return t->rank ? t->dim[t->rank - 1] : NULL;
}

void history_feed(const struct history *h, int64_t fed, struct stage *s)
{
    const int64_t *const table[] = {
        [ROLE_TOKENS] = h->token, [ROLE_MASK] = h->seen, [ROLE_POSITIONS] = h->position, [ROLE_CACHE_POSITION] = NULL};
    int tokens = decode_find_input(s, ROLE_TOKENS);
    for (int i = 0; i < s->graph->inputs.n; i++) {
        if (!follows_from_tokens(s, i))
            continue;
        bool all = s->role[i] == ROLE_MASK && last_size(s, i) != last_size(s, tokens);
        size_input_of(h, s, i, h->length - (all ? 0 : fed), &s->in[i]);
        if (s->role[i] == ROLE_CACHED || s->role[i] == ROLE_SEGMENTS)
            write_same(s->role[i] == ROLE_CACHED && fed > 0, &s->in[i]);
        else if (s->role[i] == ROLE_ADAPTER)
            write_adapters(h, &s->in[i]);
        else if (s->role[i] == ROLE_LAST)
            write_last(h, fed, &s->in[i]);
        else
            write_columns(h, table[s->role[i]], all ? 0 : fed, &s->in[i]);
    }
}
