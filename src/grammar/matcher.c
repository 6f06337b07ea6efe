/* matcher: a text under construction by a grammar: its state, and the tokens that may follow. */
#include "grammar/grammar.h"

#include <string.h>

/* The work that masks of a text may take at once, and the allowance per mask. */
enum { MOST_WORK = 2000000, WORK_EACH = 200000 };

struct matcher {
    struct arena *arena;
    struct automaton *automaton;
    int state;
    int64_t age;  /* the automaton's age when the state was taken */
    int64_t work; /* left */
    VEC(char) text;
};

struct matcher *matcher_new(struct arena *a, struct automaton *automaton)
{
    struct matcher *m = NEW(a, struct matcher);
    *m = (struct matcher){.arena = a, .automaton = automaton, .state = AUTOMATON_START, .age = automaton_age(automaton), .work = MOST_WORK};
    return m;
}

static int read_bytes(struct automaton *a, int state, const char *at, size_t n)
{
    for (size_t i = 0; i < n && state != AUTOMATON_DEAD; i++)
        state = automaton_next(a, state, (uint8_t)at[i]);
    return state;
}

/* Its state, valid for the automaton's current age. */
static int state_of(struct matcher *m)
{
    if (m->age != automaton_age(m->automaton)) {
        m->state = read_bytes(m->automaton, AUTOMATON_START, m->text.at, (size_t)m->text.n);
        m->age = automaton_age(m->automaton);
    }
    return m->state;
}

bool matcher_take(struct matcher *m, const char *at, size_t n)
{
    int state = read_bytes(m->automaton, state_of(m), at, n);
    if (state == AUTOMATON_DEAD)
        return false;
    m->state = state;
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(m->arena, &m->text, at[i]);
    return true;
}

bool matcher_accepts(struct matcher *m)
{
    return automaton_accepts(m->automaton, state_of(m));
}

bool matcher_is_last(struct matcher *m)
{
    return automaton_is_last(m->automaton, state_of(m));
}

/* ---- which tokens may follow ---- */

static void set_columns(const struct token_tree *t, int32_t column, uint64_t *mask)
{
    for (; column >= 0; column = t->same[column])
        mask[column >> 6] |= UINT64_C(1) << (column & 63);
}

/* A walk's position: the bytes of a node's path, the states before each, and their steps. */
struct walk {
    struct matcher *matcher;
    int64_t end; /* the automaton's work at which to stop */
    uint8_t byte[UINT8_MAX + 1];
    int state[UINT8_MAX + 2];
    const int32_t *steps[UINT8_MAX + 2];
};

static void enter(struct walk *w, int depth, int state)
{
    w->state[depth] = state;
    w->steps[depth] = automaton_steps(w->matcher->automaton, state);
}

/* Rebuilds the path's states, so that there is memory for others. */
static void read_path(struct walk *w, int depth)
{
    struct automaton *a = w->matcher->automaton;
    automaton_forget(a);
    enter(w, 0, state_of(w->matcher));
    for (int i = 0; i < depth; i++)
        enter(w, i + 1, automaton_next(a, w->state[i], w->byte[i]));
    automaton_settle(a);
}

/* A step that was not cached. */
static int32_t make_step(struct walk *w, int depth)
{
    if (automaton_is_full(w->matcher->automaton))
        read_path(w, depth);
    return automaton_next(w->matcher->automaton, w->state[depth], w->byte[depth]);
}

/* False: it took too long. */
static bool walk(struct matcher *m, const struct token_tree *t, uint64_t *mask)
{
    const uint8_t *class_of = automaton_grammar(m->automaton)->class_of;
    int64_t start = automaton_work(m->automaton), given_up = automaton_given_up(m->automaton);
    struct walk w = {.matcher = m, .end = start + m->work};
    enter(&w, 0, state_of(m));
    for (int64_t i = 0; i < t->nodes;) {
        const struct token_node *node = &t->node[i];
        int32_t next = w.steps[node->depth][class_of[node->byte]];
        w.byte[node->depth] = node->byte;
        if (next == AUTOMATON_UNKNOWN) {
            if (automaton_work(m->automaton) > w.end)
                return false;
            next = make_step(&w, node->depth);
            if (automaton_given_up(m->automaton) > given_up)
                return false;
        }
        if (next == AUTOMATON_DEAD) {
            i = node->behind;
            continue;
        }
        enter(&w, node->depth + 1, next);
        if (node->column >= 0)
            set_columns(t, node->column, mask);
        i++;
    }
    m->work -= automaton_work(m->automaton) - start;
    return true;
}

const uint64_t *matcher_mask(struct matcher *m, const struct token_tree *t)
{
    size_t bytes = (size_t)(t->columns + 63) / 64 * sizeof(uint64_t) + sizeof(uint64_t);
    uint64_t *mask = automaton_note(m->automaton, state_of(m), 0), *kept = NULL;
    m->work = m->work < MOST_WORK - WORK_EACH ? m->work + WORK_EACH : MOST_WORK;
    if (mask)
        return mask;
    struct arena *tmp = arena_new();
    mask = arena_alloc(tmp, bytes);
    if (walk(m, t, mask)) {
        kept = automaton_note(m->automaton, state_of(m), bytes);
        memcpy(kept, mask, bytes);
    }
    arena_free(tmp);
    return kept;
}
