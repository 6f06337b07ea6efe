/* file: the grammar of a file: GBNF, or a JSON schema. */
#include "grammar/grammar.h"

#include <string.h>

enum { LARGEST = 1 << 20 }; /* bytes */

static int schema_of(struct grammar_build *b, const char *path, struct map file)
{
    struct grammar_json j = grammar_json_new(b);
    json_error_t error;
    json_t *schema = json_loadb(file.bytes ? (const char *)file.at : "", file.bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!schema)
        fail("%s:%d:%d: expected a JSON schema, found: %s", path, error.line, error.column, error.text);
    int root = grammar_schema(&j, schema);
    json_decref(schema);
    return root;
}

static int gbnf_of(struct grammar_build *b, const char *path, struct map file)
{
    const char *text = file.bytes ? (const char *)file.at : "", *fault = string_fault(text, file.bytes);
    if (fault)
        fail("%s: %s, expected a grammar in GBNF", path, fault);
    return grammar_gbnf(b, text, file.bytes);
}

const struct grammar *grammar_file(struct arena *a, const char *path, bool schema, const char *tag)
{
    struct arena *tmp = arena_new();
    struct grammar_build *b = grammar_begin(tmp);
    struct map file = map_file(path);
    if (file.bytes > LARGEST)
        fail("%s: has %zu bytes, expected at most %d", path, file.bytes, LARGEST);
    int root = schema ? schema_of(b, path, file) : gbnf_of(b, path, file);
    map_close(file);
    if (root >= 0 && tag)
        root = grammar_behind(b, tag, root);
    const struct grammar *g = root < 0 ? NULL : grammar_compile(b, root);
    const char *wrong = g ? grammar_trial(g) : grammar_fault(b);
    if (wrong)
        fail("%s: %s", path, wrong);
    g = memcpy(arena_alloc(a, grammar_size(g)), g, grammar_size(g));
    arena_free(tmp);
    return g;
}
