/* match gbnf|schema FILE: prints for each line of stdin whether it is a text of the grammar: "whole", the beginning of one: "part", or
 * neither: "none". match schema FILE COUNT SEED: prints COUNT texts, one per line. A grammar that is refused is an error with the
 * reason. */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

static const struct grammar *read_grammar(struct grammar_build *b, const char *kind, const char *path)
{
    struct map file = map_file(path);
    int root;
    if (strcmp(kind, "gbnf") == 0)
        root = grammar_gbnf(b, (const char *)file.at, file.bytes);
    else {
        json_error_t error;
        json_t *schema = json_loadb((const char *)file.at, file.bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        if (!schema)
            fail("%s", error.text);
        struct grammar_json j = grammar_json_new(b);
        root = grammar_schema(&j, schema);
        json_decref(schema);
    }
    const struct grammar *g = root < 0 ? NULL : grammar_compile(b, root);
    if (!g)
        fail("%s", grammar_fault(b));
    return g;
}

static const char *matched(struct automaton *a, const char *line)
{
    int state = AUTOMATON_START;
    for (const char *c = line; *c && state != AUTOMATON_DEAD; c++)
        state = automaton_next(a, state, (uint8_t)*c);
    return state == AUTOMATON_DEAD ? "none" : automaton_accepts(a, state) ? "whole" : "part";
}

/* Bytes that may follow, drawn; after a while, bytes that lead to an end are preferred: brackets, quotes. False: it is too long. */
static bool make(struct automaton *a, uint64_t *random, struct captured *out)
{
    enum { LONG = 60, TOO_LONG = 6000 };
    int state = AUTOMATON_START;
    for (int n = 0; n < TOO_LONG; n++) {
        uint8_t may[256];
        int count = 0;
        *random = splitmix(*random);
        if (automaton_is_last(a, state) || (automaton_accepts(a, state) && *random % 4 == 0))
            return true;
        for (int byte = 0; byte < 256; byte++)
            if (automaton_next(a, state, (uint8_t)byte) != AUTOMATON_DEAD)
                may[count++] = (uint8_t)byte;
        require(count > 0);
        uint8_t byte = may[(*random >> 8) % (uint64_t)count];
        for (int i = 0; i < count && n > LONG; i++)
            if (strchr("\"]}", may[i]) && may[i] && (*random >> 20) % 2)
                byte = may[i];
        (void)fputc(byte == '\n' ? ' ' : byte, out->to); /* between values, where either is a blank */
        state = automaton_next(a, state, byte);
    }
    return false;
}

int main(int argc, char **argv)
{
    struct arena *arena = arena_new();
    static char line[1 << 16];
    diag_setup("match", 0);
    if (argc != 3 && argc != 5)
        fail_usage("match gbnf|schema FILE [COUNT SEED]");
    struct automaton *a = automaton_new(read_grammar(grammar_begin(arena), argv[1], argv[2]));
    uint64_t random = argc == 5 ? (uint64_t)number_read("SEED", argv[4], 0, INT64_MAX) : 0;
    for (int64_t i = argc == 5 ? number_read("COUNT", argv[3], 1, 1 << 20) : 0; i > 0; i--) {
        struct captured out;
        captured_begin(&out);
        bool whole = make(a, &random, &out);
        const char *text = captured_end(&out, arena);
        if (whole)
            puts(text);
    }
    while (argc == 3 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        puts(matched(a, line));
    }
    automaton_free(a);
    arena_free(arena);
    return EXIT_SUCCESS;
}
