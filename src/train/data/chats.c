/* chats: messages in the form of the model's chat template. Labels are what the model must write: from the template's generation prompt to
 * the token that ends the answer. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef HAVE_TEXT
#include "train/data/samples.h"

#ifdef HAVE_SERVE
#include "chat/chat.h"

#include <string.h>

struct conversations {
    struct chat *chat;
    const struct tokenizer *tokenizer;
};

struct conversations *chats_begin(struct arena *a, const char *path, const struct job_options *job, const struct tokenizer *t)
{
    struct conversations *c = NEW(a, struct conversations);
    const char *why;
    *c = (struct conversations){chat_read(a, job, t, &why), t};
    if (!c->chat)
        fail("%s: has messages: %s", path, why);
    return c;
}

void chats_end(struct conversations *c)
{
    if (c)
        chat_free(c->chat);
}

/* One conversation. */
struct writing {
    const struct conversations *of;
    struct arena *arena;
    const json_t *line, *messages; /* as given; as the template gets them */
    struct jinja_text text;        /* the whole text */
    struct token_ids ids;
};

/* Writes the first n messages. */
static const char *write_some(const struct writing *w, size_t n, bool answers, struct jinja_text *to)
{
    json_t *variables = json_object(), *some = json_array(), *tools = json_object_get(w->line, "tools");
    for (size_t i = 0; i < n; i++)
        (void)json_array_append(some, json_array_get(w->messages, i));
    (void)json_object_set_new(variables, "messages", some);
    if (tools)
        (void)json_object_set(variables, "tools", tools);
    const char *why = chat_write(w->of->chat, w->arena, variables, answers, to);
    json_decref(variables);
    return why;
}

static size_t common(const struct jinja_text *x, const struct jinja_text *y)
{
    size_t n = 0;
    while (n < x->n && n < y->n && x->at[n] == y->at[n])
        n++;
    return n;
}

/* The tokens of the text before a byte of it. */
static const char *tokens_before(const struct writing *w, size_t byte, int *n)
{
    struct token_ids ids;
    const char *why = chat_encode(w->of->tokenizer, w->arena, &w->text, byte, &ids);
    for (*n = 0; !why && *n < ids.list.n && *n < w->ids.list.n && ids.list.at[*n] == w->ids.list.at[*n];)
        ++*n;
    return why;
}

/* Marks message i, an answer. */
static const char *mark_answer(const struct writing *w, size_t i, bool *silent)
{
    struct jinja_text before, behind;
    int from = 0, to = 0;
    const char *why = write_some(w, i, true, &before);
    why = why ? why : write_some(w, i + 1, false, &behind);
    if (why)
        return why;
    size_t end = behind.n;
    if (common(&behind, &w->text) < end)
        return arena_printf(w->arena, "the chat template writes messages[%zu] otherwise once others follow, so it can't be learned", i);
    while (end && w->text.at[end - 1] == '\n')
        end--;
    why = tokens_before(w, common(&before, &w->text), &from);
    why = why ? why : tokens_before(w, end, &to);
    for (int k = from; k < to; k++)
        silent[k] = false;
    return why;
}

static const char *add(struct writing *w, struct samples *to)
{
    size_t n = json_array_size(w->messages), answers = 0;
    const char *why = write_some(w, n, false, &w->text);
    why = why ? why : chat_encode(w->of->tokenizer, w->arena, &w->text, w->text.n, &w->ids);
    bool *silent = NEWN(w->arena, bool, w->ids.list.n + 1);
    for (int i = 0; i < w->ids.list.n; i++)
        silent[i] = true;
    for (size_t i = 0; i < n && !why; i++) {
        const char *role = json_string_value(json_object_get(json_array_get(w->messages, i), "role"));
        if (role && strcmp(role, "assistant") == 0) {
            why = mark_answer(w, i, silent);
            answers++;
        }
    }
    if (why || !answers)
        return why ? why : "messages has none of role 'assistant', so there is nothing to learn";
    for (int i = 0; i < w->ids.list.n; i++) {
        VEC_PUSH(w->arena, &to->token, w->ids.list.at[i]);
        VEC_PUSH(w->arena, &to->silent, silent[i]);
    }
    return NULL;
}

const char *chats_add(const struct conversations *c, struct arena *a, const json_t *line, struct samples *to)
{
    const char *why;
    json_t *messages = chat_messages(c->chat, a, json_object_get(line, "messages"), &why);
    if (!messages)
        return why;
    struct writing w = {.of = c, .arena = a, .line = line, .messages = messages};
    why = add(&w, to);
    json_decref(messages);
    return why;
}

#else

struct conversations *chats_begin(struct arena *a, const char *path, const struct job_options *job, const struct tokenizer *t)
{
    (void)a, (void)job, (void)t;
    fail("%s: has messages, and this program was built without chat templates", path);
}

const char *chats_add(const struct conversations *c, struct arena *a, const json_t *line, struct samples *to)
{
    (void)c, (void)a, (void)line, (void)to;
    bug("no chat templates");
}

void chats_end(struct conversations *c)
{
    (void)c;
}
#endif
#endif
