/* words: texts of a list as a tree, so that shared prefixes share states. */
#include "grammar/grammar.h"

#include <string.h>

static int next_node(struct grammar_words *w, int at, uint32_t unit)
{
    EACH (const struct word_next, n, w->node.at[at].next)
        if (n->unit == unit)
            return n->node;
    const struct word_next n = {unit, w->node.n};
    VEC_PUSH(w->arena, &w->node.at[at].next, n);
    VEC_PUSH(w->arena, &w->node, ((struct word_node){0}));
    return n.node;
}

static void begin(struct grammar_words *w)
{
    if (w->node.n == 0)
        VEC_PUSH(w->arena, &w->node, ((struct word_node){0}));
}

void grammar_words_add(struct grammar_words *w, const uint32_t *unit, size_t n)
{
    int at = 0;
    begin(w);
    for (size_t i = 0; i < n; i++)
        at = next_node(w, at, unit[i]);
    w->node.at[at].ends = true;
}

static void make_states(struct grammar_build *b, int from, struct grammar_words *w)
{
    begin(w);
    for (int i = 0; i < w->node.n; i++)
        w->node.at[i].state = i ? grammar_state(b) : from;
}

void grammar_words_step(struct grammar_build *b, int from, struct grammar_words *w, int to)
{
    make_states(b, from, w);
    for (int i = 0; i < w->node.n && !grammar_fault(b); i++) {
        const struct word_node *node = &w->node.at[i];
        if (node->ends)
            grammar_skip(b, node->state, to);
        EACH (const struct word_next, n, node->next) {
            struct grammar_bytes s = {{0}};
            grammar_put_byte(&s, (int)n->unit);
            grammar_step(b, node->state, s, w->node.at[n->node].state);
        }
    }
}

static void step_char(struct grammar_build *b, int from, uint32_t unit, int to)
{
    char bytes[4];
    int n = string_put_char(unit, bytes);
    grammar_skip(b, grammar_literal(b, from, bytes, (size_t)n), to);
}

/* Characters of plain text, except those that continue a word. */
static struct grammar_chars other_chars(struct arena *a, const struct word_node *node)
{
    struct grammar_chars c = {0};
    grammar_chars_add(a, &c, 0, ' ' - 1);
    grammar_chars_add(a, &c, '"', '"');
    grammar_chars_add(a, &c, '\\', '\\');
    EACH (const struct word_next, n, node->next)
        grammar_chars_add(a, &c, n->unit, n->unit);
    grammar_chars_sort(a, &c);
    return grammar_chars_others(a, &c);
}

void grammar_words_other(struct grammar_json *j, int from, struct grammar_words *w, int to)
{
    struct grammar_build *b = j->build;
    const struct word_node none = {0};
    const struct grammar_chars all = other_chars(j->arena, &none);
    int other = grammar_state(b);
    make_states(b, grammar_literal(b, from, "\"", 1), w);
    grammar_chars_step(b, other, &all, other);
    step_char(b, other, '"', to);
    for (int i = 0; i < w->node.n && !grammar_fault(b); i++) {
        const struct word_node *node = &w->node.at[i];
        const struct grammar_chars rest = other_chars(j->arena, node);
        grammar_chars_step(b, node->state, &rest, other);
        if (!node->ends)
            step_char(b, node->state, '"', to);
        EACH (const struct word_next, n, node->next)
            step_char(b, node->state, n->unit, w->node.at[n->node].state);
    }
}
