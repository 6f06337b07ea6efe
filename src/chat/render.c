/* render: a conversation to text and tokens. */
#include "chat/chat.h"

#include <string.h>

enum { MOST_VARIABLES = 64 };

static const struct chat_template *choose(const struct chat *c, const json_t *variables)
{
    bool tools = json_array_size(json_object_get(variables, "tools")) > 0;
    return &c->template[tools && c->template[CHAT_TOOLS].where ? CHAT_TOOLS : CHAT_USUAL];
}

/* Everything from the request is untrusted. */
static const char *names_of(struct arena *a, const json_t *variables, const char **name)
{
    int n = 0;
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)variables, key, v)
    {
        if (n == MOST_VARIABLES)
            return arena_printf(a, "more than %d variables are given for the chat template", MOST_VARIABLES);
        name[n++] = arena_strdup(a, key);
    }
    name[n] = NULL;
    return NULL;
}

const char *chat_write(const struct chat *c, struct arena *a, const json_t *variables, bool answers, struct jinja_text *out)
{
    const struct chat_template *t = choose(c, variables);
    const char *name[MOST_VARIABLES + 1], *why = names_of(a, variables, name);
    struct jinja_fault f;
    if (why || t->fault)
        return why ? why : t->fault;
    json_t *all = json_copy(c->tokens);
    (void)json_object_update(all, (json_t *)(uintptr_t)variables);
    (void)json_object_set_new(all, "add_generation_prompt", json_boolean(answers));
    bool done = jinja_render(t->parsed, a, all, name, out, &f);
    json_decref(all);
    return done ? NULL
                : arena_printf(a, "the chat template refuses the conversation: %s (%s:%d:%d)", f.sentence, t->where, f.line, f.column);
}

/* ---- tokens ---- */

struct encoding {
    const struct tokenizer *tokenizer;
    struct arena *arena;
    struct text text;
    struct text_spans untrusted;
    struct token_ids ids;
};

static void encode(void *data)
{
    struct encoding *e = data;
    e->ids = tokenizer_encode_mixed(e->tokenizer, e->arena, e->text, e->untrusted);
}

/* A role is one of a few, and templates make special tokens of it, '<|' + role + '|>', so it is trusted. */
static struct text_spans spans_of(struct arena *a, const struct jinja_text *t, size_t bytes)
{
    struct text_span *span = NEWN(a, struct text_span, t->ranges + 1);
    int n = 0;
    for (int i = 0; i < t->ranges; i++) {
        const struct jinja_range r = {t->untrusted[i].from, t->untrusted[i].to < bytes ? t->untrusted[i].to : bytes};
        if (r.from < r.to && !chat_is_role((struct text){t->at + r.from, r.to - r.from}))
            span[n++] = (struct text_span){r.from, r.to};
    }
    return (struct text_spans){span, n};
}

/* The template itself ended with the opening tag. */
static bool ends_in_tag(const struct jinja_text *t, struct text tag)
{
    size_t n = t->n, others = t->ranges ? t->untrusted[t->ranges - 1].to : 0;
    while (n && (t->at[n - 1] == '\n' || t->at[n - 1] == ' '))
        n--;
    return tag.n && n >= tag.n && n - tag.n >= others && memcmp(t->at + n - tag.n, tag.at, tag.n) == 0;
}

const char *chat_encode(const struct tokenizer *tokenizer, struct arena *a, const struct jinja_text *t, size_t bytes, struct token_ids *to)
{
    struct encoding e = {.tokenizer = tokenizer, .arena = a, .text = {t->at, bytes}, .untrusted = spans_of(a, t, bytes)};
    const char *why = diag_try(a, encode, &e);
    *to = e.ids;
    return why;
}

const char *chat_render(const struct chat *c, const struct tokenizer *tokenizer, struct arena *a, const json_t *variables,
                        struct chat_prompt *out)
{
    struct jinja_text t;
    const char *why = chat_write(c, a, variables, true, &t);
    if (why)
        return why;
    struct token_ids ids = {{NULL, 0, 0}};
    why = chat_encode(tokenizer, a, &t, t.n, &ids);
    *out = (struct chat_prompt){ids, ends_in_tag(&t, c->tags.open)};
    return why;
}
