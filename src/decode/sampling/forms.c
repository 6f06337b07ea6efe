/* forms: the tokens that a row may take, if its text must follow a grammar. Every rank has the bytes of all tokens and tracks every text,
 * but checks only its own columns. */
#include "decode/sampling/sampling.h"
#include "tokenizer/tokenizer.h"

#include <math.h>
#include <string.h>

enum { KEPT = 8 };                                /* unused automata that are kept */
static const int64_t given_up = INT64_C(1) << 40; /* a token that beats all others: from a rank that took too long */

struct used_automaton {
    struct automaton *automaton;
    int64_t rows, last_used;
};

struct forms {
    struct arena *arena;
    int64_t n, ends;
    struct grammar_token *token; /* by id */
    const bool *loses;           /* by id: a text that begins with it lacks its first blank */
    const int64_t *end;
    /* this rank's columns */
    int intervals;
    const struct interval *at;
    struct token_tree *tree;
    VEC(struct used_automaton) used;
    int64_t clock;
};

struct form {
    struct arena *arena;
    struct forms *forms;
    struct automaton *automaton;
    struct matcher *matcher;
    bool begins, made; /* its text begins with its first token; that was generated */
    uint64_t *own;     /* the mask including tokens that end a text */
};

/* ---- tokens ---- */

static void *sent(struct arena *a, struct comm *comm, const void *from, int64_t bytes)
{
    void *to = arena_alloc(a, (size_t)bytes + 1);
    if (comm->rank == 0 && bytes)
        memcpy(to, from, (size_t)bytes);
    if (bytes)
        comm_from_first(comm, "texts of tokens", to, bytes);
    return to;
}

static void check_size(const struct token_texts *t)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < t->n; i++)
        bytes += t->length[i];
    require(bytes == t->bytes);
}

struct forms *forms_new(struct comm *comm, const struct token_texts *texts, const struct end_tokens *ends)
{
    struct arena *a = arena_new();
    struct forms *f = NEW(a, struct forms);
    int64_t size[3] = {0};
    if (comm->rank == 0) {
        check_size(texts);
        size[0] = texts->n, size[1] = texts->bytes, size[2] = ends->list.n;
    }
    comm_from_first(comm, "texts of tokens", size, sizeof size);
    const uint8_t *length = sent(a, comm, comm->rank == 0 ? texts->length : NULL, size[0]);
    const char *bytes = sent(a, comm, comm->rank == 0 ? texts->at : NULL, size[1]);
    *f = (struct forms){.arena = a, .n = size[0], .ends = size[2], .token = NEWN(a, struct grammar_token, size[0] + 1)};
    f->loses = sent(a, comm, comm->rank == 0 ? texts->loses : NULL, size[0] * (int64_t)sizeof *f->loses);
    f->end = sent(a, comm, comm->rank == 0 ? ends->list.at : NULL, size[2] * (int64_t)sizeof *f->end);
    for (int64_t i = 0; i < f->n; bytes += length[i++])
        f->token[i] = (struct grammar_token){bytes, length[i]};
    for (int64_t i = 0; i < f->ends; i++)
        if (f->end[i] >= 0 && f->end[i] < f->n)
            f->token[f->end[i]].n = 0;
    return f;
}

void forms_free(struct forms *f)
{
    EACH (struct used_automaton, u, f->used)
        automaton_free(u->automaton);
    arena_free(f->arena);
}

/* ---- columns ---- */

static bool has_tree(const struct forms *f, const struct row_scores *r)
{
    return f->tree && f->intervals == r->n && (r->n == 0 || memcmp(f->at, r->at, (size_t)r->n * sizeof *r->at) == 0);
}

static const struct token_tree *tree_of(struct forms *f, const struct row_scores *r)
{
    if (has_tree(f, r))
        return f->tree;
    struct arena *tmp = arena_new();
    struct grammar_token *column = NEWN(tmp, struct grammar_token, r->columns + 1);
    struct interval *at = NEWN(f->arena, struct interval, r->n + 1);
    int64_t n = 0;
    require(!f->tree);
    for (int i = 0; i < r->n; i++) {
        at[i] = r->at[i];
        for (int64_t token = r->at[i].lo; token < r->at[i].hi; token++)
            column[n++] = token < f->n ? f->token[token] : (struct grammar_token){0};
    }
    f->intervals = r->n;
    f->at = at;
    f->tree = token_tree_new(f->arena, column, r->columns);
    arena_free(tmp);
    return f->tree;
}

/* ---- automata ---- */

static bool is_automaton_of(const struct used_automaton *u, const struct grammar *g)
{
    const struct grammar *own = automaton_grammar(u->automaton);
    return grammar_size(own) == grammar_size(g) && memcmp(own, g, grammar_size(g)) == 0;
}

/* Drops the least recently used automaton without rows. */
static void drop_one(struct forms *f)
{
    int oldest = -1, unused = 0;
    for (int i = 0; i < f->used.n; i++) {
        if (f->used.at[i].rows)
            continue;
        unused++;
        if (oldest < 0 || f->used.at[i].last_used < f->used.at[oldest].last_used)
            oldest = i;
    }
    if (unused < KEPT)
        return;
    automaton_free(f->used.at[oldest].automaton);
    f->used.at[oldest] = f->used.at[--f->used.n];
}

static struct automaton *take_automaton(struct forms *f, const struct grammar *g)
{
    struct used_automaton *found = NULL;
    EACH (struct used_automaton, u, f->used)
        if (is_automaton_of(u, g))
            found = u;
    if (!found) {
        drop_one(f);
        VEC_PUSH(f->arena, &f->used, ((struct used_automaton){.automaton = automaton_new(g)}));
        found = &f->used.at[f->used.n - 1];
    }
    found->rows++;
    found->last_used = ++f->clock;
    return found->automaton;
}

/* ---- rows ---- */

struct form *form_new(struct forms *f, const struct grammar *g, bool begins)
{
    struct arena *a = arena_new();
    struct form *form = NEW(a, struct form);
    *form = (struct form){.arena = a, .forms = f, .automaton = take_automaton(f, g), .begins = begins};
    form->matcher = matcher_new(a, form->automaton);
    return form;
}

void form_free(struct form *form)
{
    EACH (struct used_automaton, u, form->forms->used)
        if (u->automaton == form->automaton)
            u->rows--;
    arena_free(form->arena);
}

static void set_column(uint64_t *mask, int64_t column, bool to)
{
    uint64_t bit = UINT64_C(1) << (column & 63);
    mask[column >> 6] = to ? mask[column >> 6] | bit : mask[column >> 6] & ~bit;
}

/* This rank's columns, with their tokens. */
static void put_own(const struct form *form, const struct row_scores *r)
{
    const struct forms *f = form->forms;
    bool first = form->begins && !form->made, ends = matcher_accepts(form->matcher);
    for (int64_t i = 0; ends && i < f->ends; i++) {
        int64_t column = row_scores_column(r, f->end[i]);
        if (column >= 0)
            set_column(form->own, column, true);
    }
    for (int64_t token = 0; first && token < f->n; token++) {
        int64_t column = f->loses[token] ? row_scores_column(r, token) : -1;
        if (column >= 0)
            set_column(form->own, column, false);
    }
}

void form_mask(struct form *form, const struct row_scores *r, struct scored_token *score)
{
    size_t bytes = (size_t)(r->columns + 63) / 64 * sizeof(uint64_t);
    form->own = form->own ? form->own : arena_alloc(form->arena, bytes + 1);
    const uint64_t *mask = matcher_mask(form->matcher, tree_of(form->forms, r));
    memset(form->own, 0, bytes);
    if (mask) {
        memcpy(form->own, mask, bytes);
        put_own(form, r);
    }
    for (int64_t k = 0; k < r->columns; k++)
        if (!(form->own[k >> 6] >> (k & 63) & 1))
            score[k] = (struct scored_token){-INFINITY, -1};
    if (!mask && r->columns)
        score[0] = (struct scored_token){INFINITY, given_up};
}

enum form_state form_take(struct form *form, int64_t *next)
{
    const struct forms *f = form->forms;
    int64_t token = *next;
    for (int64_t i = 0; i < f->ends; i++)
        if (f->end[i] == token)
            return FORM_WHOLE;
    if (token < 0 || token == given_up) {
        *next = 0;
        return token < 0 ? FORM_STUCK : FORM_SLOW;
    }
    require(token < f->n && f->token[token].n && matcher_take(form->matcher, f->token[token].at, f->token[token].n));
    form->made = true;
    return matcher_is_last(form->matcher) ? FORM_WHOLE : FORM_GOES_ON;
}
