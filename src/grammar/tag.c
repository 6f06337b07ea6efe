/* tag: any text up to a tag, by Knuth, Morris and Pratt: a state is the number of its bytes read. */
#include "grammar/grammar.h"

#include <string.h>

enum { BLANKS = 8 };

/* The new number of matched bytes after n of them and this byte. */
static size_t matched(const char *tag, size_t n, char byte)
{
    for (size_t k = n + 1; k > 0; k--)
        if (tag[k - 1] == byte && memcmp(tag, tag + (n + 1 - k), k - 1) == 0)
            return k;
    return 0;
}

/* States by the number of bytes read; the last one is after the tag. */
static int *step_tag(struct grammar_build *b, int from, const char *tag)
{
    size_t length = strlen(tag);
    int *state = NEWN(grammar_arena(b), int, length + 1);
    for (size_t i = 0; i <= length; i++)
        state[i] = grammar_state(b);
    grammar_skip(b, from, state[0]);
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k <= i + 1; k++) {
            struct grammar_bytes s = {{0}};
            for (int byte = 0; byte < 256; byte++)
                if (matched(tag, i, (char)byte) == k)
                    grammar_put_byte(&s, byte);
            grammar_step(b, state[i], s, state[k]);
        }
    return state;
}

void grammar_until(struct grammar_build *b, int from, const char *tag, int to)
{
    const int *state = step_tag(b, from, tag);
    int blank = grammar_rule(b, "a blank");
    struct grammar_bytes blanks = {{0}};
    grammar_put_byte(&blanks, ' ');
    grammar_put_byte(&blanks, '\n');
    grammar_step(b, grammar_rule_start(b, blank), blanks, grammar_rule_end(b, blank));
    grammar_skip(b, grammar_repeat(b, state[strlen(tag)], blank, 0, BLANKS), to);
}

void grammar_search(struct grammar_build *b, int from, const char *tag, int behind, int without)
{
    const int *state = step_tag(b, from, tag);
    size_t length = strlen(tag);
    for (size_t i = 0; i < length; i++)
        grammar_skip(b, state[i], without);
    grammar_skip(b, state[length], behind);
}

int grammar_behind(struct grammar_build *b, const char *tag, int root)
{
    int rule = grammar_rule(b, "thoughts"), mid = grammar_state(b);
    grammar_until(b, grammar_rule_start(b, rule), tag, mid);
    grammar_call(b, mid, root, grammar_rule_end(b, rule));
    return rule;
}
