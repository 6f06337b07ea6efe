/* Any bytes as a grammar: as GBNF, as a JSON schema, as the pattern of one. What is taken reads a text of bytes that may follow: no state
 * is a dead end, for some byte may always follow or the text may end. */
#include "grammar/grammar.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { LONGEST = 200 };

static void read_text(const struct grammar *g, uint64_t random)
{
    struct automaton *a = automaton_new(g);
    int state = AUTOMATON_START;
    for (int i = 0; i < LONGEST && !automaton_is_last(a, state) && !automaton_is_full(a); i++) {
        int next = AUTOMATON_DEAD;
        random = splitmix(random);
        for (int k = 0; k < 256 && next == AUTOMATON_DEAD; k++)
            next = automaton_next(a, state, (uint8_t)(random + (uint64_t)k));
        if (next == AUTOMATON_DEAD)
            break;
        state = next;
    }
    (void)automaton_accepts(a, state);
    automaton_free(a);
}

static void compile(struct grammar_build *b, int root, uint64_t random)
{
    const struct grammar *g = root < 0 ? NULL : grammar_compile(b, root);
    require(!g == !!grammar_fault(b));
    if (g)
        read_text(g, random);
}

static void try_gbnf(const char *text, size_t n)
{
    struct arena *arena = arena_new();
    struct grammar_build *b = grammar_begin(arena);
    compile(b, grammar_gbnf(b, text, n), n);
    arena_free(arena);
}

static void try_schema(json_t *schema, uint64_t random)
{
    struct arena *arena = arena_new();
    struct grammar_build *b = grammar_begin(arena);
    struct grammar_json j = grammar_json_new(b);
    if (schema)
        compile(b, grammar_schema(&j, schema), random);
    json_decref(schema);
    arena_free(arena);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    try_gbnf(text, size);
    try_schema(json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL), size);
    json_t *pattern = json_stringn(text, size);
    if (pattern)
        try_schema(json_pack("{s:s, s:o}", "type", "string", "pattern", pattern), size + 1);
}
