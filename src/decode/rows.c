/* rows: a batch whose rows join and leave between steps (continuous batching).
 *
 * The KV caches of all rows have the same number of columns. A shorter row is padded on the side that the graph supports: at the front if
 * its mask hides keys, at the end if it counts them. A prompt runs alone, in one or several runs between steps of the others, in states of
 * its own, which then become a row of the batch. Rows are moved when one joins or leaves, and when there is much padding.
 *
 * A prompt is divided at the same positions whether other rows decode or not, and whether its first tokens are stored or not, because
 * rounding depends on the parts. */
#include "decode/decode.h"
#include "decode/draft/draft.h"
#include "decode/row.h"
#include "ir/rank_meta.h"

#include <string.h>

struct rows {
    struct arena *arena;
    struct chained *chain; /* makes the texts, one at a time; NULL: the stage does */
    struct comm *comm;
    struct stage *stage;
    const char *alone; /* why there is only one row; NULL: several are possible */
    struct row_side side;
    struct session_states *kept; /* of these rows; while theirs are current, of the previous ones; NULL: no others */
    struct rows **in_use;        /* whose states are current, among the rows of this stage */
    enum rows_done begun;        /* the run to be finished */
    int64_t *next;               /* the next tokens */
    int64_t n, most;
    struct row **row;
    struct row_sampling *how; /* by row */
    struct logprobs *scored;  /* by row: of its last token */
    int64_t columns;          /* of the current states */
    bool moved;               /* the current states belong to other rows */
    struct arena *feed;       /* of the history and of inputs; NULL: to be rebuilt */
    struct history history;
    struct tensor *in;                        /* the inputs from the history */
    bool parts;                               /* prompts may run in parts */
    bool all_scores;                          /* several tokens after a cache get the scores of steps */
    const struct session_columns *columns_of; /* a row; NULL: columns cannot be stored: */
    const char *unstored;                     /* the reason */
    struct prefix *prefix;                    /* NULL: nothing is stored */
    bool further;                             /* it belongs to other rows */
    bool steps;                               /* columns made by steps are stored, too */
    struct forms *forms;                      /* NULL: no row has a form so far */
    struct {
        struct row *row;               /* NULL: none is joining */
        int64_t ran;                   /* tokens of its prompt that ran */
        struct session_states *beside; /* its states between runs; NULL: they are current, because there is no other row */
        struct logprobs *scored;       /* of prompt tokens, from the last run */
        int64_t found;
    } joins;
    struct {
        struct drafter *from;      /* NULL: nothing is drafted */
        int64_t context;           /* most tokens of a row */
        int64_t n, at[DRAFT_MOST]; /* drafted in this step */
        int64_t taken;             /* tokens that the step made */
    } draft;
    struct session_collective chosen;
};

static void make_room(struct rows *r)
{
    r->row = NEWN(r->arena, struct row *, r->most);
    r->how = NEWN(r->arena, struct row_sampling, r->most);
    r->scored = NEWN(r->arena, struct logprobs, r->most);
    r->next = NEWN(r->arena, int64_t, r->most + DRAFT_MOST);
    r->joins.scored = NEWN(r->arena, struct logprobs, PREFIX_BLOCK);
}

struct rows *rows_new(struct arena *a, struct comm *comm, struct stage *s, int64_t most)
{
    struct rows *r = NEW(a, struct rows);
    *r = (struct rows){.arena = a, .comm = comm, .stage = s, .chosen = {.name = "next tokens", .op = "AllGather"}};
    if (decode_find_input(s, ROLE_TOKENS) < 0)
        fail_usage("%s: no input holds tokens: give --role INPUT=tokens", s->path);
    r->alone = rows_side(a, comm, s, &r->side);
    r->most = r->alone ? 1 : most;
    r->in_use = NEW(a, struct rows *);
    *r->in_use = r;
    make_room(r);
    stage_place_given(a, s);
    return r;
}

struct rows *rows_beside(struct arena *a, struct rows *first)
{
    struct rows *r = NEW(a, struct rows);
    require(!first->chain && first->n == 0 && !first->joins.row);
    *r = *first;
    r->arena = a;
    r->kept = session_states_new(r->stage->session);
    r->further = true;
    make_room(r);
    return r;
}

struct rows *rows_of_chain(struct arena *a, struct chained *c)
{
    struct rows *r = NEW(a, struct rows);
    *r = (struct rows){.arena = a, .chain = c, .alone = "an encoder runs for each", .most = 1};
    make_room(r);
    return r;
}

struct rows *rows_none(struct arena *a, const char *why)
{
    struct rows *r = NEW(a, struct rows);
    *r = (struct rows){.arena = a, .alone = why};
    return r;
}

const char *rows_alone(const struct rows *r)
{
    return r->alone;
}

int64_t rows_count(const struct rows *r)
{
    return r->n;
}

/* ---- stored prefixes ---- */

bool rows_try_parts(struct rows *r, const struct job_options *o, int64_t vocabulary, int64_t context)
{
    if (r->alone)
        return false;
    const struct parts_found found = parts_try(r->arena, r->comm, r->stage, r->side.symbol, o, vocabulary, context);
    r->parts = found.agree;
    r->columns_of = found.columns;
    r->unstored = found.why;
    r->all_scores = found.all_scores;
    return found.all_scores;
}

const char *rows_draft(struct rows *r, struct drafter *from, int64_t context)
{
    const char *why = r->alone ? r->alone
        : r->stage->pipeline   ? "it is in pipeline stages"
        : !r->all_scores       ? "several tokens behind a cache have other scores than those of steps, or only the last one has any"
                               : NULL;
    if (!why && !r->columns_of)
        why = r->unstored;
    r->draft.from = why ? NULL : from;
    r->draft.context = context;
    return why;
}

const char *rows_unstored(const struct rows *r)
{
    return r->alone ? r->alone : r->unstored;
}

int64_t rows_column_bytes(const struct rows *r)
{
    return session_columns_bytes(r->columns_of);
}

bool rows_store(struct rows *r, int64_t bytes, bool steps)
{
    r->prefix = prefix_new(r->arena, r->comm, r->stage->session, r->columns_of, bytes);
    r->steps = steps;
    return r->prefix;
}

struct prefix_counts rows_stored(const struct rows *r)
{
    return r->prefix ? prefix_counts(r->prefix) : (struct prefix_counts){0};
}

int64_t rows_find_stored(struct rows *r, int64_t adapter, const int64_t *prompt, int64_t n)
{
    return r->prefix ? prefix_find(r->prefix, adapter, prompt, n) : 0;
}

/* ---- the forms of texts ---- */

bool rows_has_forms(const struct rows *r)
{
    return r->forms;
}

void rows_set_forms(struct rows *r, struct forms *f)
{
    r->forms = f;
}

static struct form *form_of(const struct rows *r, const struct row_sampling *how)
{
    require(!how->grammar || r->forms);
    return how->grammar ? form_new(r->forms, how->grammar, how->begins) : NULL;
}

enum form_state rows_form(const struct rows *r, int64_t row)
{
    return r->chain ? chained_form(r->chain) : r->row[row]->form;
}

/* ---- the history of the rows ---- */

static int64_t in_cache(const struct row *row)
{
    return row->token.n - 1;
}

static int64_t longest(const struct rows *r)
{
    int64_t most = 0;
    for (int64_t b = 0; b < r->n; b++)
        most = in_cache(r->row[b]) > most ? in_cache(r->row[b]) : most;
    return most;
}

static void forget_history(struct rows *r)
{
    if (r->feed)
        arena_free(r->feed);
    r->feed = NULL;
}

enum { SPARE = 256 };

void rows_interrupt(struct rows *r)
{
    forget_history(r);
}

/* The columns of the cache, then the tokens after it. */
static void make_history(struct rows *r)
{
    forget_history(r);
    r->feed = arena_new();
    r->history = history_empty(r->feed, r->n, r->columns + 1 + SPARE);
    struct history *h = &r->history;
    for (; h->length < r->columns; h->length++)
        for (int64_t b = 0; b < r->n; b++) {
            int64_t i = r->side.behind ? h->length : h->length - (r->columns - in_cache(r->row[b]));
            bool seen = i >= 0 && i < in_cache(r->row[b]);
            history_put(h, b, seen ? r->row[b]->token.at[i] : 0, seen);
        }
    int64_t *adapter = NEWN(r->feed, int64_t, r->n);
    for (int64_t b = 0; b < r->n; b++) {
        history_put(h, b, r->row[b]->token.at[in_cache(r->row[b])], true);
        r->how[b] = r->row[b]->how;
        adapter[b] = r->how[b].adapter;
    }
    h->adapter = adapter;
    h->length++;
    h->scored = r->draft.from ? r->draft.from->pace.most + 1 : 1; /* space for their positions */
    history_reserve(r->feed, h, r->stage);
    h->scored = 1;
    size_t bytes = (size_t)r->stage->graph->inputs.n * sizeof *r->in;
    r->in = memcpy(arena_alloc(r->feed, bytes + 1), r->stage->in, bytes);
}

/* ---- the states of the rows ---- */

/* Makes the states of these rows current. */
static void use_states(struct rows *r)
{
    struct rows *before = *r->in_use;
    if (before == r)
        return;
    session_states_swap(r->stage->session, r->kept);
    before->kept = r->kept;
    r->kept = NULL;
    *r->in_use = r;
}

/* added: states of the last row alone; NULL: it is in place. */
static void move_rows(struct rows *r, const struct session_states *added)
{
    struct arena *tmp = arena_new();
    struct session_state_row *to = NEWN(tmp, struct session_state_row, r->n);
    int64_t columns = longest(r);
    for (int64_t b = 0; b < r->n; b++) {
        bool other = added && b == r->n - 1;
        int64_t n = in_cache(r->row[b]), had = other ? n : r->columns;
        to[b] = (struct session_state_row){.from = other ? added : NULL,
                                           .row = other ? 0 : r->row[b]->place,
                                           .column = r->side.behind ? 0 : had - n,
                                           .columns = n,
                                           .to = r->side.behind ? 0 : columns - n};
        r->row[b]->place = b;
    }
    session_states_compose(r->stage->session, r->side.symbol, r->n, columns, to);
    r->columns = columns;
    r->moved = false;
    forget_history(r);
    arena_free(tmp);
}

/* ---- a row that joins ---- */

static void swap_beside(struct rows *r)
{
    if (r->joins.beside)
        session_states_swap(r->stage->session, r->joins.beside);
}

static void begin_states(struct rows *r, int64_t stored)
{
    use_states(r);
    r->joins.beside = r->n ? session_states_new(r->stage->session) : NULL;
    r->joins.ran = stored;
    swap_beside(r);
    if (stored)
        prefix_take(r->prefix, r->joins.row->how.adapter, r->joins.row->token.at, stored);
    else
        session_states_compose(r->stage->session, NULL, 0, 0, NULL);
    swap_beside(r);
}

void rows_join(struct rows *r, const int64_t *prompt, int64_t n, int64_t stored, const struct row_sampling *how)
{
    if (r->chain) {
        require(how->repeats || !how->made);
        chained_begin(r->chain, prompt, n - how->made, how, form_of(r, how));
        return;
    }
    require(r->n < r->most && !r->joins.row);
    r->joins.row = row_new(prompt, n, how, form_of(r, how));
    begin_states(r, stored);
}

/* Its whole prompt has run, in the current states or, if there were other rows when it began, in separate ones. */
static void add_joined(struct rows *r, struct row *row, int64_t *next)
{
    bool first = r->n == 0;
    use_states(r);
    if (first)
        swap_beside(r);
    r->columns = first ? row->token.n : r->columns;
    r->moved = r->moved && !first;
    row_put_next(row, next);
    r->row[r->n++] = row;
    if (!first)
        move_rows(r, r->joins.beside);
    if (r->joins.beside)
        session_states_free(r->joins.beside);
    r->joins.row = NULL;
    r->joins.beside = NULL;
}

/* Scores each prompt token that follows one of [from, to). */
static void score_prompt(struct rows *r, const struct row *row, const struct history *h, int64_t from, int64_t to)
{
    struct arena *tmp = arena_new();
    struct logprobs_place place[PREFIX_BLOCK];
    int64_t n = 0;
    require(to - from <= PREFIX_BLOCK);
    for (int64_t i = from; i < to && i + 1 < row->token.n; i++)
        place[n++] = (struct logprobs_place){.back = to - 1 - i, .token = row->token.at[i + 1], .alternatives = row->how.alternatives};
    if (n && r->stage->logits >= 0) {
        const struct row_scores scores = row_scores_of(tmp, r->stage, h);
        logprobs_find(r->stage->comm, &scores, n, place, &r->chosen, r->joins.scored);
        logprobs_tell(r->stage, n, r->joins.scored);
    }
    r->joins.found = n;
    arena_free(tmp);
}

void rows_begin_prompt(struct rows *r)
{
    if (r->chain) {
        r->next[0] = chained_next(r->chain, r->scored);
        r->begun = ROWS_JOINED;
        return;
    }
    struct arena *tmp = arena_new();
    struct row *row = r->joins.row;
    bool scores = row->how.prompt_logprobs;
    int64_t n = row->token.n, from = r->joins.ran, to = r->parts && from + PREFIX_BLOCK < n ? from + PREFIX_BLOCK : n;
    forget_history(r);
    use_states(r);
    swap_beside(r);
    struct history h = parts_run(tmp, r->stage, row->how.adapter, row->token.at, from, to, scores);
    if (r->prefix)
        prefix_keep(r->prefix, row->how.adapter, row->token.at, to, 0, 0);
    r->joins.found = 0;
    if (scores)
        score_prompt(r, row, &h, from, to);
    if (to == n) {
        pick_next(r->stage, &h, &row->how, r->next, &r->chosen);
        logprobs_next(r->stage, &h, &row->how, r->next, &r->chosen, &r->scored[r->n]);
    }
    swap_beside(r);
    arena_free(tmp);
    r->joins.ran = to;
    r->begun = to == n ? ROWS_JOINED : ROWS_PART;
}

/* Its first token is at index r->n. */
static void finish_prompt(struct rows *r)
{
    struct row *row = r->joins.row;
    pick_wait(r->stage, 1, r->next);
    logprobs_wait(r->stage, 1, &row->how, &r->scored[r->n]);
    add_joined(r, row, r->next);
}

const struct logprobs *rows_logprobs(const struct rows *r, int64_t row)
{
    return &r->scored[row];
}

const struct logprobs *rows_prompt_logprobs(const struct rows *r, int64_t *n)
{
    *n = r->joins.found;
    return r->joins.scored;
}

void rows_drop(struct rows *r)
{
    row_free(r->joins.row);
    if (r->joins.beside)
        session_states_free(r->joins.beside);
    r->joins.row = NULL;
    r->joins.beside = NULL;
}

void rows_leave(struct rows *r, int64_t row)
{
    if (r->chain) {
        r->n = 0;
        return;
    }
    struct row *left = r->row[row];
    for (int64_t b = row; b + 1 < r->n; b++)
        r->row[b] = r->row[b + 1];
    r->n--;
    r->moved = true;
    forget_history(r);
    row_free(left);
}

/* Whether to drop padding in front of the longest row. */
static bool has_much_padding(const struct rows *r)
{
    int64_t most = longest(r);
    return r->columns > most + most / 4 + SPARE;
}

static void keep_step(struct rows *r, const struct row *row)
{
    int64_t n = in_cache(row);
    if (r->prefix && r->steps)
        prefix_keep(r->prefix, row->how.adapter, row->token.at, n, row->place, r->side.behind ? 0 : r->columns - n);
}

static int64_t lesser(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* A row that is alone continues with several tokens. One with a form, or with log-probabilities, takes them one by one. */
static void draft_tokens(struct rows *r)
{
    const struct row *row = r->row[0];
    struct drafter *from = r->draft.from;
    int64_t room = lesser(r->history.room - r->history.length, r->draft.context - row->token.n) - 1;
    r->draft.n = 0;
    if (!from || r->n != 1 || row->how.form || row->how.logprobs)
        return;
    int64_t most = lesser(draft_pace_next(&from->pace), room);
    if (most > 0)
        r->draft.n = from->draft(from, &r->history, r->how, NULL, most, r->draft.at);
}

static void take_drafts(struct rows *r)
{
    r->draft.taken = 0;
    do {
        r->columns++;
        row_put_next(r->row[0], &r->next[r->draft.taken]);
        keep_step(r, r->row[0]);
        history_add(&r->history, &r->next[r->draft.taken]);
    } while (r->draft.taken++ < r->draft.n && r->next[r->draft.taken - 1] == r->draft.at[r->draft.taken - 1]);
    if (r->draft.taken <= r->draft.n)
        session_states_cut(r->stage->session, r->columns);
    draft_pace_note(&r->draft.from->pace, r->draft.n, r->draft.taken - 1);
}

void rows_begin_step(struct rows *r)
{
    r->begun = ROWS_STEPPED;
    if (r->chain) {
        r->next[0] = chained_next(r->chain, r->scored);
        return;
    }
    struct stage *s = r->stage;
    use_states(r);
    if (!r->alone && (r->moved || has_much_padding(r)))
        move_rows(r, NULL);
    if (!r->feed || r->history.length == r->history.room)
        make_history(r);
    memcpy(s->in, r->in, (size_t)s->graph->inputs.n * sizeof *s->in);
    draft_tokens(r);
    if (r->draft.n) {
        draft_run(s, &r->history, r->columns, r->how, r->draft.n, r->draft.at, r->next, &r->chosen);
        return;
    }
    history_feed(&r->history, s->keeps ? r->columns : 0, s);
    session_run(s->session, s->in, s->out);
    pick_next(s, &r->history, r->how, r->next, &r->chosen);
    logprobs_next(s, &r->history, r->how, r->next, &r->chosen, r->scored);
}

static void finish_step(struct rows *r)
{
    if (r->draft.n) {
        use_states(r);
        take_drafts(r);
        return;
    }
    pick_wait(r->stage, r->n, r->next);
    logprobs_wait(r->stage, r->n, r->how, r->scored);
    r->columns++;
    use_states(r);
    for (int64_t b = 0; b < r->n; b++) {
        row_put_next(r->row[b], &r->next[b]);
        keep_step(r, r->row[b]);
    }
    history_add(&r->history, r->next);
}

enum rows_done rows_finish(struct rows *r, int64_t *next)
{
    enum rows_done done = r->begun;
    int64_t before = r->n;
    if (!r->chain && (done == ROWS_PART || done == ROWS_JOINED))
        logprobs_hear(r->stage, r->joins.found, r->joins.scored);
    r->draft.taken = 1;
    if (!r->chain && done == ROWS_JOINED)
        finish_prompt(r);
    if (!r->chain && done == ROWS_STEPPED)
        finish_step(r);
    int64_t tokens = done == ROWS_STEPPED ? before * r->draft.taken : done == ROWS_JOINED;
    memcpy(next, r->next, (size_t)tokens * sizeof *next);
    if (r->chain && done == ROWS_JOINED)
        r->n = 1;
    r->begun = ROWS_NONE;
    return done;
}

int64_t rows_taken(const struct rows *r)
{
    return r->draft.taken;
}

int64_t rows_drafted(const struct rows *r)
{
    return r->draft.n;
}

void rows_free(struct rows *r)
{
    while (r->n)
        rows_leave(r, r->n - 1);
    if (r->joins.row)
        rows_drop(r);
    if (r->chain)
        chained_free(r->chain);
    if (r->prefix && !r->further)
        prefix_free(r->prefix);
    if (r->forms && !r->further)
        forms_free(r->forms);
    if (r->kept)
        session_states_free(r->kept);
    forget_history(r);
}
