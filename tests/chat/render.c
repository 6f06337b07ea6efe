/* render FOLDER: each line of stdin, variables of a chat template in JSON, becomes a line: {"ids", "thinks", "ends"}, or {"why"}. For
 * tests/chat.tap. */
#include "chat/chat.h"

#include <stdlib.h>

static json_t *id_list(const int64_t *id, int n)
{
    json_t *out = json_array();
    for (int i = 0; i < n; i++)
        (void)json_array_append_new(out, json_integer(id[i]));
    return out;
}

static json_t *render(const struct chat *c, const struct tokenizer *t, struct arena *a, const json_t *in)
{
    struct chat_prompt p;
    const char *why = NULL;
    json_t *variables = json_copy((json_t *)(uintptr_t)in), *messages = chat_messages(c, a, json_object_get(in, "messages"), &why);
    if (messages)
        (void)json_object_set_new(variables, "messages", messages);
    why = why ? why : chat_render(c, t, a, variables, &p);
    json_decref(variables);
    return why ? json_pack("{s:s}", "why", why)
               : json_pack("{s:o, s:b, s:o}", "ids", id_list(p.ids.list.at, p.ids.list.n), "thinks", p.thinks, "ends",
                           id_list(c->ends.list.at, c->ends.list.n));
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct job_options o = job_defaults();
    const char *why;
    char *line = NULL;
    size_t cap = 0;
    diag_setup("render", 0);
    if (argc != 2)
        fail_usage("expected a folder");
    VEC_PUSH(a, &o.paths.text, argv[1]);
    struct tokenizer *t = tokenizer_read(a, path_join(a, argv[1], "tokenizer.json"));
    struct chat *c = chat_read(a, &o, t, &why);
    if (!c)
        fail("%s", why);
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        json_t *in = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL), *out = in ? render(c, t, a, in) : NULL;
        if (!out)
            fail("a line is no JSON");
        json_dumpf(out, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(out);
        json_decref(in);
    }
    free(line);
    chat_free(c);
    arena_free(a);
    return 0;
}
