/* prompt: the first columns of a history, from the user's tokens and mask.
 *
 * Tokens that the mask hides are removed. Rows of unequal length are then padded to the longest: at the front if the graph hides masked
 * keys anywhere; at the end if the graph counts the keys of each row, which must come first. A graph that supports neither is rejected. */
#include "decode/decode.h"
#include "job/io/io.h"
#include "op/analysis/analysis.h"

#include <string.h>

struct prompt {
    const struct stage *stage;
    const struct tensor *tokens, *mask, *positions; /* NULL: not given */
    int64_t batch, n, past;
    int64_t longest, shortest;
    int64_t *length, *shown; /* by row: number of tokens that the mask shows, and their columns, [batch, n] */
    bool hides;              /* some position of a row is hidden */
};

/* ---- what is given ---- */

static const struct tensor *given_with(const struct stage *s, enum role role)
{
    int i = decode_find_input(s, role);
    return i >= 0 && s->given[i].data ? &s->given[i] : NULL;
}

static void check_beside_tokens(const struct prompt *p, enum role role, const struct tensor *t, bool with_past)
{
    int64_t want = p->batch * p->n, all = p->batch * (p->past + p->n), n = t ? tensor_elements(t) : want;
    const char *past = with_past && p->past ? ", or with the past " : "";
    char number[32] = "";
    if (*past)
        snprintf(number, sizeof number, "%lld", (long long)all);
    if (t && (t->rank > 2 || (n != want && (!with_past || n != all))))
        fail("%s: input '%s' has %lld elements, expected %lld for %lld rows of %lld tokens%s%s", p->stage->path,
             p->stage->graph->inputs.at[decode_find_input(p->stage, role)]->name, (long long)n, (long long)want, (long long)p->batch,
             (long long)p->n, past, number);
}

static int64_t given_past(const struct stage *s)
{
    EACH (const struct state, state, s->graph->states) {
        for (int i = 0; state->past && state->dim >= 0 && i < s->graph->inputs.n; i++)
            if (s->graph->inputs.at[i] == state->past && s->given[i].data && state->dim < s->given[i].rank)
                return s->given[i].dim[state->dim];
    }
    return 0;
}

static struct prompt read_given(const struct stage *s)
{
    const char *name = s->graph->inputs.at[decode_find_input(s, ROLE_TOKENS)]->name;
    struct prompt p = {.stage = s, .tokens = given_with(s, ROLE_TOKENS), .mask = given_with(s, ROLE_MASK)};
    p.positions = given_with(s, ROLE_POSITIONS);
    if (!p.tokens)
        fail_usage("%s: input '%s' holds the prompt: give it with --input %s=FILE", s->path, name, name);
    if (p.tokens->rank >= 1 && p.tokens->rank <= 2 && tensor_elements(p.tokens) == 0)
        fail("%s: input '%s': expected at least one token in a row and one row, found none: %s", s->path, name,
             outputs_shape_text(s->graph->arena, p.tokens));
    if (p.tokens->rank < 1 || p.tokens->rank > 2)
        fail("%s: input '%s': expected tokens [batch, sequence], found %s", s->path, name, outputs_shape_text(s->graph->arena, p.tokens));
    p.n = p.tokens->dim[p.tokens->rank - 1];
    p.batch = p.tokens->rank == 2 ? p.tokens->dim[0] : 1;
    p.past = given_past(s);
    check_beside_tokens(&p, ROLE_MASK, p.mask, true);
    check_beside_tokens(&p, ROLE_POSITIONS, p.positions, false);
    return p;
}

/* Columns count from the first of the past. */
static bool is_shown(const struct prompt *p, int64_t row, int64_t column)
{
    if (!p->mask)
        return true;
    int64_t columns = tensor_elements(p->mask) / p->batch, at = column - (p->past + p->n - columns);
    return at < 0 || tensor_element(p->mask, row * columns + at) > 0;
}

static void check_token(const struct prompt *p, int64_t row, int64_t column, int64_t token)
{
    const struct stage *s = p->stage;
    if (s->vocabulary > 0 && (token < 0 || token >= s->vocabulary))
        fail("%s: input '%s': token %lld of row %lld is %lld, expected 0 to %lld: the vocabulary has %lld rows", s->path,
             s->graph->inputs.at[decode_find_input(s, ROLE_TOKENS)]->name, (long long)column, (long long)row, (long long)token,
             (long long)s->vocabulary - 1, (long long)s->vocabulary);
}

/* A hidden token may be any number. */
static void put_token(const struct prompt *p, struct history *h, int64_t row, int64_t column, bool seen)
{
    int64_t at = row * p->n + column, token = (int64_t)tensor_element(p->tokens, at);
    if (seen)
        check_token(p, row, column, token);
    history_put(h, row, token, seen);
    if (p->positions)
        h->position[row * h->room + h->length] = (int64_t)tensor_element(p->positions, at);
}

struct history prompt_as_given(struct arena *a, const struct stage *s)
{
    const struct prompt p = read_given(s);
    struct history h = history_empty(a, p.batch, p.n);
    for (; h.length < p.n; h.length++)
        for (int64_t b = 0; b < p.batch; b++)
            put_token(&p, &h, b, h.length, is_shown(&p, b, h.length));
    return h;
}

/* ---- rows of unequal length ---- */

static void find_shown(struct arena *a, struct prompt *p)
{
    p->length = NEWN(a, int64_t, p->batch);
    p->shown = NEWN(a, int64_t, p->batch * p->n);
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t c = 0; c < p->n; c++)
            if (is_shown(p, b, p->past + c))
                p->shown[b * p->n + p->length[b]++] = c;
        for (int64_t c = 0; c < p->past; c++)
            p->hides = p->hides || !is_shown(p, b, c);
        if (p->length[b] == 0)
            fail("%s: the mask hides all tokens of row %lld", p->stage->path, (long long)b);
        p->longest = p->length[b] > p->longest ? p->length[b] : p->longest;
        p->shortest = b == 0 || p->length[b] < p->shortest ? p->length[b] : p->shortest;
    }
    p->hides = p->hides || p->shortest < p->longest;
}

/* kind, name: of the object at fault, or empty. */
_Noreturn static void refuse_rows(const struct prompt *p, const struct stage *s, const char *kind, const char *name, const char *why)
{
    fail("%s: rows of %lld to %lld tokens can't run together%s: %s%s%s%s%s; run rows of one length at a time", s->path,
         (long long)p->shortest, (long long)p->longest, p->past ? " after this past" : "", kind, *kind ? " '" : "", name, *kind ? "' " : "",
         why);
}

/* The node that reads table rows by token position, which counts padding; NULL: none. */
static const char *rows_by_place(const struct stage *s)
{
    int i = decode_find_input(s, ROLE_CACHE_POSITION);
    const char *n = decode_find_input(s, ROLE_POSITIONS) < 0 ? op_position_tables(s->graph, NULL).by_place : NULL;
    return n || i < 0 || decode_find_input(s, ROLE_POSITIONS) >= 0 ? n : op_position_tables(s->graph, s->graph->inputs.at[i]).by_place;
}

const char *prompt_padding(const struct stage *s, bool *behind, const char **node)
{
    int i = decode_find_input(s, ROLE_MASK);
    enum mask_use use = i < 0 ? MASK_UNREAD : op_mask_use(s->graph, s->graph->inputs.at[i]);
    *node = use == MASK_KEYS ? rows_by_place(s) : NULL;
    *behind = use == MASK_LENGTHS;
    if (use == MASK_UNREAD)
        return "it reads no mask";
    return *node ? "finds positions by place, and padding has places" : "";
}

/* True: padding follows a row's tokens. */
static bool pads_behind(const struct prompt *p, const struct stage *s)
{
    const char *node;
    bool behind;
    const char *why = prompt_padding(s, &behind, &node), *state = session_recurrent_state(s->session);
    if (*why)
        refuse_rows(p, s, node ? "node" : "", node ? node : "", why);
    if (state && p->shortest < p->longest)
        refuse_rows(p, s, "state", state, "would take in what pads the shorter ones");
    if (behind && p->shortest < p->longest && (p->past || !s->keeps))
        refuse_rows(p, s, "", "", p->past ? "it takes the new keys of all rows for equally many" : "it counts keys and keeps none");
    return behind;
}

/* The stages from the prompt's on share one mask. */
static bool all_pad_behind(const struct prompt *p, int n)
{
    bool behind = false;
    for (int k = 0; k < n; k++) {
        const struct stage *s = &p->stage[k];
        bool own = pads_behind(p, s);
        if (k > 0 && own != behind)
            refuse_rows(p, s, "", "", "the graph before it pads them on the other side");
        behind = own;
    }
    return behind;
}

static void put_past(const struct prompt *p, struct history *h)
{
    for (; h->length < p->past; h->length++)
        for (int64_t b = 0; b < p->batch; b++)
            history_put(h, b, 0, is_shown(p, b, h->length));
}

static void put_prompt(const struct prompt *p, struct history *h, bool behind)
{
    for (int64_t c = 0; c < p->longest; c++, h->length++)
        for (int64_t b = 0; b < p->batch; b++) {
            int64_t i = behind ? c : c - (p->longest - p->length[b]);
            if (i >= 0 && i < p->length[b])
                put_token(p, h, b, p->shown[b * p->n + i], true);
            else
                history_put(h, b, 0, false);
        }
}

struct history prompt_rows(struct arena *a, const struct stage *s, int stages, int64_t more)
{
    struct prompt p = read_given(s);
    int64_t room;
    find_shown(a, &p);
    bool behind = p.hides && all_pad_behind(&p, stages);
    if (!i64_add(p.past, p.longest, &room) || !i64_add(room, more, &room))
        fail("%s: a row of %lld tokens and %lld more is too long", s->path, (long long)p.longest, (long long)more);
    struct history h = history_empty(a, p.batch, room);
    h.past = p.past;
    put_past(&p, &h);
    put_prompt(&p, &h, behind);
    for (int64_t b = 0; behind && b < p.batch; b++)
        h.behind[b] = p.longest - p.length[b];
    return h;
}
