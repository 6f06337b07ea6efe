/* tokenize FILE encode|plain|mixed|decode|stream: each line of stdin, a JSON string or an array of ids, becomes a line of JSON. plain:
 * without special tokens; mixed: an array of texts, every second one untrusted; stream: decoded id by id. For tests/tokenizer.tap. */
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static json_t *id_list(struct token_ids ids)
{
    json_t *out = json_array();
    for (int i = 0; i < ids.list.n; i++)
        json_array_append_new(out, json_integer(ids.list.at[i]));
    return out;
}

/* An array of texts: every second one is untrusted. */
static json_t *mixed_ids(const struct tokenizer *t, struct arena *a, const json_t *parts)
{
    struct text_builder b = {.arena = a};
    struct text_span *span = NEWN(a, struct text_span, json_array_size(parts) + 1);
    int n = 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        size_t from = text_built(&b).n;
        text_put(&b, json_string_value(part), json_string_length(part));
        if (i % 2 && text_built(&b).n > from)
            span[n++] = (struct text_span){from, text_built(&b).n};
    }
    return id_list(tokenizer_encode_mixed(t, a, text_built(&b), (struct text_spans){span, n}));
}

static json_t *ids_of(const struct tokenizer *t, struct arena *a, const json_t *text, bool special)
{
    return id_list(tokenizer_encode(t, a, json_string_value(text), json_string_length(text), special));
}

static json_t *text_from(const struct tokenizer *t, struct arena *a, const json_t *list, bool stream)
{
    int n = (int)json_array_size(list);
    int64_t *id = NEWN(a, int64_t, n + 1);
    for (int i = 0; i < n; i++)
        id[i] = json_integer_value(json_array_get(list, (size_t)i));
    if (!stream) {
        struct text all = tokenizer_decode(t, a, id, n, true);
        return json_stringn_nocheck(all.at, all.n);
    }
    struct text_stream s = {0};
    struct text_builder b = {.arena = a};
    for (int i = 1; i <= n; i++) {
        struct text more = tokenizer_stream(t, a, &s, id, i, i == n);
        text_put(&b, more.at, more.n);
    }
    return json_stringn_nocheck(text_built(&b).at, text_built(&b).n);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new(), *tmp = arena_new();
    char *line = NULL;
    size_t cap = 0;
    diag_setup("tokenize", 0);
    if (argc != 3)
        fail_usage("expected a tokenizer.json and encode, plain, mixed, decode or stream");
    struct tokenizer *t = tokenizer_read(a, argv[1]);
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        json_t *in = json_loadb(line, (size_t)n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        bool encode = strcmp(argv[2], "encode") == 0, plain = strcmp(argv[2], "plain") == 0;
        if (!in)
            fail("a line is no JSON");
        json_t *out = encode || plain       ? ids_of(t, tmp, in, encode)
            : strcmp(argv[2], "mixed") == 0 ? mixed_ids(t, tmp, in)
                                            : text_from(t, tmp, in, strcmp(argv[2], "stream") == 0);
        json_dumpf(out, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
        putchar('\n');
        json_decref(out);
        json_decref(in);
        arena_reset(tmp);
    }
    free(line);
    arena_free(tmp);
    arena_free(a);
    return 0;
}
