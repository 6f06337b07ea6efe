/* build: a grammar's rules as states and transitions. */
#include "grammar/grammar.h"

#include <string.h>

struct grammar_build *grammar_begin(struct arena *a)
{
    struct grammar_build *b = NEW(a, struct grammar_build);
    b->arena = b->sets.arena = b->chars.arena = a;
    return b;
}

const char *grammar_fault(const struct grammar_build *b)
{
    return b->wrong;
}

void grammar_refuse(struct grammar_build *b, const char *sentence)
{
    b->wrong = b->wrong ? b->wrong : sentence;
}

struct arena *grammar_arena(const struct grammar_build *b)
{
    return b->arena;
}

static void refuse_size(struct grammar_build *b)
{
    grammar_refuse(b, arena_printf(b->arena, "it is too large: it has more than %d states or %d steps", GRAMMAR_STATES, GRAMMAR_EDGES));
}

/* ---- states and rules ---- */

int grammar_state(struct grammar_build *b)
{
    if (b->state.n >= GRAMMAR_STATES) {
        refuse_size(b);
        return 0;
    }
    VEC_PUSH(b->arena, &b->state, ((struct build_state){0}));
    return b->state.n - 1;
}

int grammar_rule(struct grammar_build *b, const char *name)
{
    const struct build_rule r = {.name = name, .start = grammar_state(b), .end = grammar_state(b)};
    if (b->wrong && b->rule.n)
        return 0;
    VEC_PUSH(b->arena, &b->rule, r);
    return b->rule.n - 1;
}

int grammar_rule_start(const struct grammar_build *b, int rule)
{
    return b->rule.at[rule].start;
}

int grammar_rule_end(const struct grammar_build *b, int rule)
{
    return b->rule.at[rule].end;
}

/* ---- steps ---- */

void grammar_put_byte(struct grammar_bytes *s, int byte)
{
    s->bit[byte >> 6] |= UINT64_C(1) << (byte & 63);
}

static bool has_room(struct grammar_build *b)
{
    if (++b->edges > GRAMMAR_EDGES)
        refuse_size(b);
    return !b->wrong;
}

void grammar_step(struct grammar_build *b, int from, struct grammar_bytes s, int to)
{
    if ((s.bit[0] | s.bit[1] | s.bit[2] | s.bit[3]) && has_room(b)) {
        const struct grammar_edge e = {numbered_find(&b->sets, (const int32_t *)(const void *)&s, sizeof s / sizeof(int32_t)), to};
        VEC_PUSH(b->arena, &b->state.at[from].steps, e);
    }
}

void grammar_skip(struct grammar_build *b, int from, int to)
{
    if (from != to && has_room(b))
        VEC_PUSH(b->arena, &b->state.at[from].skips, to);
}

void grammar_call(struct grammar_build *b, int from, int rule, int to)
{
    const struct grammar_edge e = {rule, to};
    if (has_room(b))
        VEC_PUSH(b->arena, &b->state.at[from].calls, e);
}

int grammar_literal(struct grammar_build *b, int from, const char *text, size_t n)
{
    for (size_t i = 0; i < n && !b->wrong; i++) {
        struct grammar_bytes s = {{0}};
        int to = grammar_state(b);
        grammar_put_byte(&s, (unsigned char)text[i]);
        grammar_step(b, from, s, to);
        from = to;
    }
    return from;
}

int grammar_repeat(struct grammar_build *b, int from, int rule, int64_t least, int64_t most)
{
    for (int64_t i = 0; i < least && !b->wrong; i++) {
        int to = grammar_state(b);
        grammar_call(b, from, rule, to);
        from = to;
    }
    int end = grammar_state(b);
    if (most < 0) { /* a new state that no other transition leads to */
        grammar_skip(b, from, end);
        grammar_call(b, end, rule, end);
        return end;
    }
    for (int64_t i = least; i < most && !b->wrong; i++) {
        int to = grammar_state(b);
        grammar_skip(b, from, end);
        grammar_call(b, from, rule, to);
        from = to;
    }
    grammar_skip(b, from, end);
    return end;
}
