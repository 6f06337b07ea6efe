/* automaton: reads bytes according to a grammar. A state is a set of positions in rules, each with a stack of return positions. The stacks
 * form a graph (GSS; Tomita, 1985): a stack is a set of nodes, a node a position and the stack below it. States, sets and nodes are
 * hash-consed, so transitions are cached. */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

enum {
    BOTTOM = 0,         /* the node below all others */
    MOST_PLACES = 4096, /* positions of a state; a state with more counts as dead, and so does */
    MOST_NODES = 1024,  /* one with a larger set of nodes */
    FULL = 64 << 20,    /* approximate bytes of states */
    HEAD = 1,           /* numbers that a state has before its positions, */
    PLACE = 2,          /* and per position */
    STEP = 32,          /* base work of a step */
    MOST_STEP = 500000  /* limit per step; a step that takes more is abandoned */
};

/* A position in a rule, and its stack. */
struct place {
    int32_t at, stack;
    bool again; /* the stack has grown since positions below it were found */
};
struct made_state {
    int32_t *to; /* by class; AUTOMATON_UNKNOWN */
    void *note;
};

struct automaton {
    struct arena *own, *made; /* automaton_forget frees the second one */
    const struct grammar *grammar;
    const struct grammar_bytes *set;
    const struct grammar_edge *step, *call;
    const struct grammar_state *state;
    const struct grammar_rule_at *rule;
    int64_t age;
    size_t bytes, settled;
    int64_t work;     /* total work of steps: positions and nodes */
    int64_t until;    /* the work at which the current step is abandoned */
    int64_t given_up; /* abandoned steps */
    struct numbered nodes, stacks, states;
    VEC(struct made_state) kept;
    /* results of a step */
    VEC(struct place) place;
    int32_t *place_of;  /* by grammar state: its position plus 1; 0: none */
    VEC(int32_t) begun; /* rules */
    int32_t *stack_of;  /* by rule: its stack; -1: it does not begin */
    VEC(int32_t) key;
    VEC(int32_t) merged;
    bool ends, too_many, too_long;
    bool no_start; /* the closure before the first byte was abandoned */
};

/* ---- stacks ---- */

static int32_t find(struct automaton *a, struct numbered *in, const int32_t *at, int32_t n)
{
    int32_t before = in->n, number = numbered_find(in, at, n);
    if (in->n > before)
        a->bytes += (size_t)(n + 12) * sizeof *at;
    return number;
}

static int32_t stack_of_node(struct automaton *a, int32_t node)
{
    return find(a, &a->stacks, &node, 1);
}

/* The union of two sorted sets of nodes. */
static int32_t join_stacks(struct automaton *a, int32_t x, int32_t y)
{
    if (x < 0 || x == y)
        return y;
    const int32_t *p = a->stacks.list[x].at, *q = a->stacks.list[y].at;
    int32_t n = a->stacks.list[x].n, m = a->stacks.list[y].n;
    a->merged.n = 0;
    for (int32_t i = 0, k = 0; i < n || k < m;) {
        int32_t node = k == m || (i < n && p[i] <= q[k]) ? p[i] : q[k];
        i += i < n && p[i] == node;
        k += k < m && q[k] == node;
        VEC_PUSH(a->own, &a->merged, node);
    }
    a->too_many |= a->merged.n > MOST_NODES;
    a->work += a->merged.n;
    return find(a, &a->stacks, a->merged.at, a->merged.n);
}

/* ---- the step of a byte ---- */

/* The current step must stop. */
static bool is_over(struct automaton *a)
{
    a->too_long |= a->work > a->until;
    return a->too_many || a->too_long;
}

static void add_place(struct automaton *a, int32_t at, int32_t stack)
{
    if (is_over(a))
        return;
    a->work++;
    if (!a->place_of[at]) {
        VEC_PUSH(a->own, &a->place, ((struct place){at, stack, true}));
        a->place_of[at] = a->place.n;
        a->too_many |= a->place.n > MOST_PLACES;
        return;
    }
    struct place *p = &a->place.at[a->place_of[at] - 1];
    int32_t joined = join_stacks(a, p->stack, stack);
    p->again |= joined != p->stack;
    p->stack = joined;
}

/* Where a rule may end, the rules waiting for it continue. */
static void go_below(struct automaton *a, int32_t stack)
{
    for (int32_t i = 0; i < a->stacks.list[stack].n && !is_over(a); i++) {
        int32_t node = a->stacks.list[stack].at[i];
        if (node == BOTTOM)
            a->ends = true;
        else
            add_place(a, a->nodes.list[node].at[0], a->nodes.list[node].at[1]);
    }
}

static void end_rules(struct automaton *a)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < a->place.n && !is_over(a); i++) {
            struct place *p = &a->place.at[i];
            if (!p->again)
                continue;
            p->again = false;
            more = true;
            if (a->state[p->at].ends)
                go_below(a, p->stack);
        }
    }
}

/* A rule in tail position uses its caller's stack. */
static void begin_rule(struct automaton *a, const struct grammar_edge *call, int32_t stack)
{
    int32_t rule = call->set;
    a->work++;
    if (!a->state[call->to].only_ends) {
        const int32_t node[] = {call->to, stack};
        stack = stack_of_node(a, find(a, &a->nodes, node, 2));
    }
    if (a->stack_of[rule] < 0)
        VEC_PUSH(a->own, &a->begun, rule);
    a->stack_of[rule] = join_stacks(a, a->stack_of[rule], stack);
}

static void begin_rules(struct automaton *a, int32_t at, int32_t stack)
{
    for (int32_t i = a->state[at].call; i < a->state[at + 1].call && !is_over(a); i++)
        begin_rule(a, &a->call[i], stack);
}

/* Moves the first rule in order, of those from i on, to i: no later one can begin with it. */
static int32_t take_first_rule(struct automaton *a, int i)
{
    int first = i;
    a->work += a->begun.n - i;
    for (int k = i + 1; k < a->begun.n; k++)
        if (a->rule[a->begun.at[k]].order < a->rule[a->begun.at[first]].order)
            first = k;
    int32_t rule = a->begun.at[first];
    a->begun.at[first] = a->begun.at[i];
    a->begun.at[i] = rule;
    return rule;
}

static void put_key(struct automaton *a, int32_t at, int32_t stack)
{
    if (a->state[at].step == a->state[at + 1].step)
        return;
    VEC_PUSH(a->own, &a->key, at);
    VEC_PUSH(a->own, &a->key, stack);
}

static int by_place(const void *x, const void *y)
{
    const int32_t *a = x, *b = y;
    return a[0] != b[0] ? (a[0] < b[0] ? -1 : 1) : a[1] < b[1] ? -1 : a[1] > b[1];
}

static int32_t keep_state(struct automaton *a)
{
    int32_t n = (a->key.n - HEAD) / PLACE;
    if (is_over(a) || (n == 0 && !a->ends))
        return AUTOMATON_DEAD;
    a->key.at[0] = a->ends;
    qsort(a->key.at + HEAD, (size_t)n, PLACE * sizeof *a->key.at, by_place);
    int32_t number = find(a, &a->states, a->key.at, a->key.n);
    if (number == a->kept.n) {
        struct made_state s = {.to = NEWN(a->made, int32_t, a->grammar->classes)};
        memset(s.to, AUTOMATON_UNKNOWN, (size_t)a->grammar->classes * sizeof *s.to);
        a->bytes += (size_t)a->grammar->classes * sizeof *s.to + 2 * sizeof s;
        VEC_PUSH(a->made, &a->kept, s);
    }
    return number;
}

static void find_nothing(struct automaton *a)
{
    a->ends = a->too_many = a->too_long = false;
    a->until = a->work + MOST_STEP;
    a->place.n = a->begun.n = a->key.n = 0;
    VEC_PUSH(a->own, &a->key, 0);
}

/* The closure of the added positions up to the next byte. */
static int32_t finish_step(struct automaton *a)
{
    end_rules(a);
    for (int i = 0; i < a->place.n; i++) {
        put_key(a, a->place.at[i].at, a->place.at[i].stack);
        begin_rules(a, a->place.at[i].at, a->place.at[i].stack);
        a->place_of[a->place.at[i].at] = 0;
    }
    for (int i = 0; i < a->begun.n && !is_over(a); i++) {
        int32_t rule = take_first_rule(a, i), start = a->rule[rule].start;
        put_key(a, start, a->stack_of[rule]);
        begin_rules(a, start, a->stack_of[rule]);
    }
    for (int i = 0; i < a->begun.n; i++)
        a->stack_of[a->begun.at[i]] = -1;
    a->given_up += a->too_long;
    return keep_state(a);
}

/* ---- states ---- */

static bool has_class(const struct grammar_bytes *s, int class)
{
    return s->bit[class >> 6] >> (class & 63) & 1;
}

static int32_t make_step(struct automaton *a, int32_t from, int class)
{
    const int32_t *key = a->states.list[from].at;
    int32_t n = a->states.list[from].n;
    find_nothing(a);
    a->work += from == AUTOMATON_START && a->no_start ? MOST_STEP + 1 : STEP;
    for (int32_t k = HEAD; k < n && !is_over(a); k += PLACE) {
        a->work += 1 + a->state[key[k] + 1].step - a->state[key[k]].step;
        for (int32_t i = a->state[key[k]].step; i < a->state[key[k] + 1].step; i++)
            if (has_class(&a->set[a->step[i].set], class))
                add_place(a, a->step[i].to, key[k + 1]);
    }
    return finish_step(a);
}

static void make_start(struct automaton *a)
{
    const int32_t bottom[] = {-1, -1};
    int32_t root = a->grammar->root;
    a->made = arena_new();
    a->nodes = a->stacks = a->states = (struct numbered){.arena = a->made};
    a->kept.n = a->kept.cap = 0;
    a->bytes = 0;
    find_nothing(a);
    (void)find(a, &a->nodes, bottom, 2);
    int32_t stack = stack_of_node(a, BOTTOM);
    (void)find(a, &a->states, NULL, 0); /* the dead state */
    VEC_PUSH(a->made, &a->kept, ((struct made_state){.to = NEWN(a->made, int32_t, a->grammar->classes)}));
    a->begun.n = 0;
    VEC_PUSH(a->own, &a->begun, root);
    a->stack_of[root] = stack;
    a->ends = a->state[a->rule[root].start].ends;
    int32_t start = finish_step(a);
    a->no_start = a->too_long;
    if (start == AUTOMATON_DEAD) { /* too many positions */
        (void)find(a, &a->states, bottom, 1);
        VEC_PUSH(a->made, &a->kept, ((struct made_state){.to = NEWN(a->made, int32_t, a->grammar->classes)}));
        if (a->no_start)
            memset(a->kept.at[AUTOMATON_START].to, AUTOMATON_UNKNOWN, (size_t)a->grammar->classes * sizeof(int32_t));
    }
}

struct automaton *automaton_new(const struct grammar *g)
{
    struct arena *own = arena_new();
    struct automaton *a = NEW(own, struct automaton);
    struct grammar *copy = arena_alloc(own, g->bytes);
    memcpy(copy, g, g->bytes);
    *a = (struct automaton){.own = own,
                            .grammar = copy,
                            .set = grammar_sets(copy),
                            .step = grammar_steps(copy),
                            .call = grammar_calls(copy),
                            .state = grammar_states(copy),
                            .rule = grammar_rules(copy)};
    a->place_of = NEWN(own, int32_t, g->states);
    a->stack_of = NEWN(own, int32_t, g->rules);
    memset(a->stack_of, -1, (size_t)g->rules * sizeof *a->stack_of);
    make_start(a);
    return a;
}

void automaton_free(struct automaton *a)
{
    arena_free(a->made);
    arena_free(a->own);
}

const struct grammar *automaton_grammar(const struct automaton *a)
{
    return a->grammar;
}

void automaton_forget(struct automaton *a)
{
    arena_free(a->made);
    make_start(a);
    a->age++;
}

int64_t automaton_age(const struct automaton *a)
{
    return a->age;
}

bool automaton_is_full(const struct automaton *a)
{
    return a->bytes > FULL && a->bytes > 2 * a->settled;
}

int64_t automaton_work(const struct automaton *a)
{
    return a->work;
}

int64_t automaton_given_up(const struct automaton *a)
{
    return a->given_up;
}

void automaton_settle(struct automaton *a)
{
    a->settled = a->bytes;
}

int automaton_next(struct automaton *a, int state, uint8_t byte)
{
    int class = a->grammar->class_of[byte];
    int32_t to = a->kept.at[state].to[class];
    if (to == AUTOMATON_UNKNOWN) {
        to = make_step(a, state, class);
        a->kept.at[state].to[class] = a->too_long ? AUTOMATON_UNKNOWN : to;
    }
    return to;
}

const int32_t *automaton_steps(const struct automaton *a, int state)
{
    return a->kept.at[state].to;
}

bool automaton_accepts(const struct automaton *a, int state)
{
    return state != AUTOMATON_DEAD && a->states.list[state].at[0] == 1;
}

bool automaton_is_last(struct automaton *a, int state)
{
    return a->states.list[state].n <= HEAD;
}

void *automaton_note(struct automaton *a, int state, size_t bytes)
{
    struct made_state *s = &a->kept.at[state];
    if (!s->note && bytes) {
        s->note = arena_alloc(a->made, bytes);
        a->bytes += bytes;
    }
    return s->note;
}
