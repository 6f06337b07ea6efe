/* render: templates of stdin, one a line as JSON: {"template": TEXT, "variables": {...}, "untrusted": [NAME...]}. Each becomes a line of
 * JSON: {"text": TEXT, "untrusted": [[FROM, TO]...]}, or {"fault": SENTENCE, "line": N, "column": N, "parsed": whether rendering began}.
 * For tests/jinja.tap. */
#include "jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

static json_t *shown_fault(const struct jinja_fault *fault, bool parsed)
{
    return json_pack("{s:s, s:i, s:i, s:b}", "fault", fault->sentence, "line", fault->line, "column", fault->column, "parsed", parsed);
}

static json_t *rendered(struct arena *a, const json_t *in)
{
    const json_t *text = json_object_get(in, "template"), *names = json_object_get(in, "untrusted");
    const char **untrusted = NEWN(a, const char *, json_array_size(names) + 1);
    struct jinja_fault fault;
    struct jinja_text out;
    struct jinja *t = jinja_parse(a, json_string_value(text), json_string_length(text), &fault);
    for (size_t i = 0; i < json_array_size(names); i++)
        untrusted[i] = json_string_value(json_array_get(names, i));
    if (!t)
        return shown_fault(&fault, false);
    if (!jinja_render(t, a, json_object_get(in, "variables"), untrusted, &out, &fault))
        return shown_fault(&fault, true);
    json_t *ranges = json_array();
    for (int i = 0; i < out.ranges; i++)
        json_array_append_new(ranges, json_pack("[I, I]", (json_int_t)out.untrusted[i].from, (json_int_t)out.untrusted[i].to));
    return json_pack("{s:o, s:o}", "text", json_stringn(out.at, out.n), "untrusted", ranges);
}

int main(void)
{
    struct arena *a = arena_new();
    char *line = NULL;
    size_t cap = 0;
    diag_setup("render", 0);
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        json_error_t why;
        json_t *in = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &why);
        if (!in)
            fail("a line is no JSON: %s", why.text);
        json_t *out = rendered(a, in);
        json_dumpf(out, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(in);
        json_decref(out);
        arena_reset(a);
    }
    free(line);
    arena_free(a);
    return 0;
}
