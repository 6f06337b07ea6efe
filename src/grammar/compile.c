/* compile: the automaton's form of a grammar, without states that lead to no end and without empty transitions. */
#include "grammar/grammar.h"

#include <string.h>

struct compiling {
    struct arena *arena;
    struct grammar_build *build;
    bool *useful;         /* by state: the end of its rule is reachable */
    bool *nullable;       /* by rule: it matches the empty text */
    int32_t *order;       /* by rule: after the rules that begin with it; -1: unknown, -2: in progress */
    int32_t *seen;        /* by state: the state for which it was last visited, plus 1 */
    VEC(int32_t) reached; /* by a state without a byte */
    VEC(struct grammar_edge) steps, calls;
    VEC(struct grammar_state) states;
    int32_t next_order;
};

/* ---- states that lead to an end ---- */

/* Whether a state is useful, by current knowledge. */
static bool leads_on(const struct compiling *c, const struct build_state *s)
{
    EACH (const struct grammar_edge, e, s->steps) {
        if (c->useful[e->to])
            return true;
    }
    EACH (const int32_t, to, s->skips) {
        if (c->useful[*to])
            return true;
    }
    EACH (const struct grammar_edge, e, s->calls) {
        if (c->useful[e->to] && c->useful[c->build->rule.at[e->set].start])
            return true;
    }
    return false;
}

struct state_list {
    VEC(int32_t) list;
};

static void note_looks(struct compiling *c, struct state_list *looks)
{
    for (int i = 0; i < c->build->state.n; i++) {
        const struct build_state *s = &c->build->state.at[i];
        EACH (const struct grammar_edge, e, s->steps)
            VEC_PUSH(c->arena, &looks[e->to].list, i);
        EACH (const int32_t, to, s->skips)
            VEC_PUSH(c->arena, &looks[*to].list, i);
        EACH (const struct grammar_edge, e, s->calls) {
            VEC_PUSH(c->arena, &looks[e->to].list, i);
            VEC_PUSH(c->arena, &looks[c->build->rule.at[e->set].start].list, i);
        }
    }
}

static void find_useful(struct compiling *c)
{
    struct state_list *looks = NEWN(c->arena, struct state_list, c->build->state.n), work = {0};
    c->useful = NEWN(c->arena, bool, c->build->state.n);
    note_looks(c, looks);
    for (int r = 0; r < c->build->rule.n; r++) {
        c->useful[c->build->rule.at[r].end] = true;
        VEC_PUSH(c->arena, &work.list, c->build->rule.at[r].end);
    }
    while (work.list.n) {
        const struct state_list *l = &looks[work.list.at[--work.list.n]];
        EACH (const int32_t, s, l->list) {
            if (c->useful[*s] || !leads_on(c, &c->build->state.at[*s]))
                continue;
            c->useful[*s] = true;
            VEC_PUSH(c->arena, &work.list, *s);
        }
    }
}

/* ---- states reached without a byte ---- */

static void reach(struct compiling *c, int32_t state, int32_t mark)
{
    if (!c->useful[state] || c->seen[state] == mark)
        return;
    c->seen[state] = mark;
    VEC_PUSH(c->arena, &c->reached, state);
}

/* All states that a state reaches without a byte, by current knowledge of rules. */
static void reach_all(struct compiling *c, int32_t state, int32_t mark)
{
    c->reached.n = 0;
    reach(c, state, mark);
    for (int i = 0; i < c->reached.n; i++) {
        const struct build_state *s = &c->build->state.at[c->reached.at[i]];
        EACH (const int32_t, to, s->skips)
            reach(c, *to, mark);
        EACH (const struct grammar_edge, e, s->calls)
            if (c->nullable[e->set])
                reach(c, e->to, mark);
    }
}

/* States that rules reach from their start without a byte. Calls of a rule wait until it is known to be nullable. */
struct nothing {
    bool *reached;
    struct state_list work, *waits; /* by rule */
};

static void reach_by_nothing(struct compiling *c, struct nothing *n, int32_t state)
{
    if (n->reached[state])
        return;
    n->reached[state] = true;
    VEC_PUSH(c->arena, &n->work.list, state);
}

static void find_nullable(struct compiling *c)
{
    struct nothing n = {NEWN(c->arena, bool, c->build->state.n), {{0}}, NEWN(c->arena, struct state_list, c->build->rule.n)};
    int32_t *rule_of_end = NEWN(c->arena, int32_t, c->build->state.n);
    c->nullable = NEWN(c->arena, bool, c->build->rule.n);
    for (int r = 0; r < c->build->rule.n; r++) {
        rule_of_end[c->build->rule.at[r].end] = r + 1;
        reach_by_nothing(c, &n, c->build->rule.at[r].start);
    }
    while (n.work.list.n) {
        int32_t state = n.work.list.at[--n.work.list.n], rule = rule_of_end[state] - 1;
        const struct build_state *s = &c->build->state.at[state];
        EACH (const int32_t, to, s->skips)
            reach_by_nothing(c, &n, *to);
        EACH (const struct grammar_edge, e, s->calls) {
            if (c->nullable[e->set])
                reach_by_nothing(c, &n, e->to);
            else
                VEC_PUSH(c->arena, &n.waits[e->set].list, e->to);
        }
        if (rule < 0)
            continue;
        c->nullable[rule] = true;
        EACH (const int32_t, to, n.waits[rule].list)
            reach_by_nothing(c, &n, *to);
    }
}

/* ---- states ---- */

static bool is_useful_call(const struct compiling *c, const struct grammar_edge *e)
{
    return c->useful[e->to] && c->useful[c->build->rule.at[e->set].start];
}

static void write_state(struct compiling *c, int32_t state, int32_t end)
{
    struct grammar_state out = {.step = c->steps.n, .call = c->calls.n};
    reach_all(c, state, state + 1);
    for (int i = 0; i < c->reached.n; i++) {
        const struct build_state *s = &c->build->state.at[c->reached.at[i]];
        out.ends |= c->reached.at[i] == end;
        EACH (const struct grammar_edge, e, s->steps)
            if (c->useful[e->to])
                VEC_PUSH(c->arena, &c->steps, *e);
        EACH (const struct grammar_edge, e, s->calls)
            if (is_useful_call(c, e))
                VEC_PUSH(c->arena, &c->calls, *e);
    }
    out.only_ends = out.ends && c->steps.n == out.step && c->calls.n == out.call;
    VEC_PUSH(c->arena, &c->states, out);
    if (c->steps.n > GRAMMAR_EDGES || c->calls.n > GRAMMAR_EDGES)
        grammar_refuse(c->build, arena_printf(c->arena, "it is too large: it has more than %d steps", GRAMMAR_EDGES));
}

static void put_end(struct compiling *c, struct state_list *work, int32_t *end, int32_t state, int32_t value)
{
    if (end[state] >= 0)
        return;
    end[state] = value;
    VEC_PUSH(c->arena, &work->list, state);
}

/* By state: the end of its rule. A rule's states are connected, and no other rule shares them. */
static int32_t *find_ends(struct compiling *c)
{
    struct state_list work = {0};
    int32_t *end = NEWN(c->arena, int32_t, c->build->state.n);
    memset(end, -1, (size_t)c->build->state.n * sizeof *end);
    for (int r = 0; r < c->build->rule.n; r++)
        put_end(c, &work, end, c->build->rule.at[r].start, c->build->rule.at[r].end);
    while (work.list.n) {
        int32_t from = work.list.at[--work.list.n];
        const struct build_state *s = &c->build->state.at[from];
        EACH (const struct grammar_edge, e, s->steps)
            put_end(c, &work, end, e->to, end[from]);
        EACH (const struct grammar_edge, e, s->calls)
            put_end(c, &work, end, e->to, end[from]);
        EACH (const int32_t, to, s->skips)
            put_end(c, &work, end, *to, end[from]);
    }
    return end;
}

static void write_states(struct compiling *c)
{
    const int32_t *end = find_ends(c);
    for (int32_t s = 0; s < c->build->state.n && !c->build->wrong; s++)
        write_state(c, s, end[s]);
    VEC_PUSH(c->arena, &c->states, ((struct grammar_state){.step = c->steps.n, .call = c->calls.n}));
}

/* ---- the order of rules ---- */

struct visit {
    int32_t rule, call;
};

static void refuse_left_recursion(struct compiling *c, int32_t rule)
{
    grammar_refuse(
        c->build,
        arena_printf(c->arena, "'%.100s' begins with itself: a rule may follow itself only behind a byte", c->build->rule.at[rule].name));
}

/* Rules come after the rules that begin with them: depth first, without recursion. */
static void order_from(struct compiling *c, int32_t rule)
{
    VEC(struct visit) path = {0};
    VEC_PUSH(c->arena, &path, ((struct visit){rule, c->states.at[c->build->rule.at[rule].start].call}));
    c->order[rule] = -2;
    while (path.n && !c->build->wrong) {
        struct visit *v = &path.at[path.n - 1];
        if (v->call == c->states.at[c->build->rule.at[v->rule].start + 1].call) {
            c->order[v->rule] = c->next_order--;
            path.n--;
            continue;
        }
        int32_t next = c->calls.at[v->call++].set;
        if (c->order[next] == -2)
            refuse_left_recursion(c, next);
        else if (c->order[next] == -1) {
            c->order[next] = -2;
            VEC_PUSH(c->arena, &path, ((struct visit){next, c->states.at[c->build->rule.at[next].start].call}));
        }
    }
}

static void order_rules(struct compiling *c)
{
    c->order = NEWN(c->arena, int32_t, c->build->rule.n);
    c->next_order = c->build->rule.n;
    for (int r = 0; r < c->build->rule.n; r++)
        c->order[r] = -1;
    for (int r = 0; r < c->build->rule.n && !c->build->wrong; r++)
        if (c->order[r] == -1)
            order_from(c, r);
}

/* ---- classes of bytes ---- */

static bool has_byte(const int32_t *set, int byte)
{
    return ((uint32_t)set[byte >> 5] >> (byte & 31)) & 1;
}

/* Each set refines the classes so far. */
static int32_t find_classes(const struct numbered *sets, uint8_t *class_of)
{
    int32_t n = 1;
    memset(class_of, 0, 256);
    for (int32_t s = 0; s < sets->n; s++) {
        int32_t inside[256], before = n;
        bool outside[256] = {0};
        memset(inside, -1, sizeof inside);
        for (int byte = 0; byte < 256; byte++)
            outside[class_of[byte]] |= !has_byte(sets->list[s].at, byte);
        for (int byte = 0; byte < 256; byte++) {
            int old = class_of[byte];
            if (!has_byte(sets->list[s].at, byte) || !outside[old])
                continue;
            if (inside[old] < 0)
                inside[old] = n++;
            class_of[byte] = (uint8_t)inside[old];
        }
        require(n >= before && n <= 256);
    }
    return n;
}

static void write_sets(const struct numbered *sets, const uint8_t *class_of, struct grammar_bytes *to)
{
    for (int32_t s = 0; s < sets->n; s++)
        for (int byte = 0; byte < 256; byte++)
            if (has_byte(sets->list[s].at, byte))
                grammar_put_byte(&to[s], class_of[byte]);
}

/* ---- the whole ---- */

static size_t place(struct grammar *g, size_t bytes)
{
    size_t at = g->bytes;
    g->bytes += (bytes + 15) / 16 * 16;
    return at;
}

static void *at(const struct grammar *g, size_t offset)
{
    return (char *)(uintptr_t)g + offset;
}

const struct grammar_bytes *grammar_sets(const struct grammar *g)
{
    return at(g, g->set_at);
}

const struct grammar_edge *grammar_steps(const struct grammar *g)
{
    return at(g, g->step_at);
}

const struct grammar_edge *grammar_calls(const struct grammar *g)
{
    return at(g, g->call_at);
}

const struct grammar_state *grammar_states(const struct grammar *g)
{
    return at(g, g->state_at);
}

const struct grammar_rule_at *grammar_rules(const struct grammar *g)
{
    return at(g, g->rule_at);
}

size_t grammar_size(const struct grammar *g)
{
    return g->bytes;
}

static void copy(void *to, const void *from, int n, size_t each)
{
    if (n)
        memcpy(to, from, (size_t)n * each);
}

static const struct grammar *write_all(struct compiling *c, int root)
{
    const struct numbered *sets = &c->build->sets;
    struct grammar head = {.bytes = (sizeof head + 15) / 16 * 16,
                           .root = root,
                           .rules = c->build->rule.n,
                           .states = c->build->state.n,
                           .steps = c->steps.n,
                           .calls = c->calls.n,
                           .sets = sets->n};
    head.classes = find_classes(sets, head.class_of);
    head.set_at = place(&head, (size_t)head.sets * sizeof(struct grammar_bytes));
    head.step_at = place(&head, (size_t)head.steps * sizeof *c->steps.at);
    head.call_at = place(&head, (size_t)head.calls * sizeof *c->calls.at);
    head.state_at = place(&head, (size_t)c->states.n * sizeof *c->states.at);
    head.rule_at = place(&head, (size_t)head.rules * sizeof(struct grammar_rule_at));
    struct grammar *g = arena_alloc(c->build->arena, head.bytes);
    *g = head;
    write_sets(sets, head.class_of, at(g, head.set_at));
    copy(at(g, head.step_at), c->steps.at, head.steps, sizeof *c->steps.at);
    copy(at(g, head.call_at), c->calls.at, head.calls, sizeof *c->calls.at);
    copy(at(g, head.state_at), c->states.at, c->states.n, sizeof *c->states.at);
    struct grammar_rule_at *rule = at(g, head.rule_at);
    for (int r = 0; r < head.rules; r++)
        rule[r] = (struct grammar_rule_at){c->build->rule.at[r].start, c->order[r]};
    return g;
}

const struct grammar *grammar_compile(struct grammar_build *b, int root)
{
    const struct grammar *g = NULL;
    struct compiling c = {.arena = arena_new(), .build = b};
    if (!b->wrong) {
        c.seen = NEWN(c.arena, int32_t, b->state.n);
        find_useful(&c);
        if (!c.useful[b->rule.at[root].start])
            grammar_refuse(b, "no text of it ever ends");
        find_nullable(&c);
    }
    if (!b->wrong)
        write_states(&c);
    if (!b->wrong)
        order_rules(&c);
    if (!b->wrong)
        g = write_all(&c, root);
    b->wrong = b->wrong ? arena_strdup(b->arena, b->wrong) : NULL;
    arena_free(c.arena);
    return g;
}
