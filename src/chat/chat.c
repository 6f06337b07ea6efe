/* chat: properties of a model's conversations, found before the first one. The template is tried on made-up messages: one that drops them
 * is not used. */
#include "config.h"

#include "chat/chat.h"

#include <string.h>

/* ---- variables other than the request's ---- */

static bool is_token_name(const char *key)
{
    return path_ends(key, "_token");
}

static void put_tokens(json_t *to, const char *path)
{
    json_t *root = path ? tokenizer_json(path) : NULL, *v;
    const char *key;
    json_object_foreach(root, key, v)
    {
        const json_t *text = is_token_name(key) ? json_token_text(v) : NULL;
        if (text && !json_object_get(to, key))
            (void)json_object_set(to, key, (json_t *)(uintptr_t)text);
    }
    v = json_object_get(root, "additional_special_tokens");
    if (json_is_array(v) && !json_object_get(to, "additional_special_tokens"))
        (void)json_object_set(to, "additional_special_tokens", v);
    json_decref(root);
}

static json_t *read_tokens(struct arena *a, const struct job_options *o)
{
    json_t *tokens = json_object();
    put_tokens(tokens, config_beside(a, o, TEXT_TOKENIZER_CONFIG));
    put_tokens(tokens, config_beside(a, o, TEXT_SPECIAL_TOKENS));
    return tokens;
}

/* ---- made-up messages ---- */

static const char said[] = "what somebody says", answered[] = "what the model answers";

static json_t *made_up(const struct chat *c, const char *const *text, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *content = c->lists ? json_pack("[{s:s, s:s}]", "type", "text", "text", text[i]) : json_string(text[i]);
        (void)json_array_append_new(list, json_pack("{s:s, s:o}", "role", i % 2 ? "assistant" : "user", "content", content));
    }
    return json_pack("{s:o}", "messages", list);
}

/* The text that the template writes after `text`, for messages by user and model in turn; NULL: the template drops it, *why says why on
 * failure. */
static const char *behind(const struct chat *c, struct arena *a, int n, const char *text, size_t *rest, const char **why)
{
    struct jinja_text t = {0};
    json_t *variables = made_up(c, (const char *const[]){said, answered, said}, n);
    *why = chat_write(c, a, variables, text == said, &t);
    json_decref(variables);
    const char *at = *why || !t.n ? NULL : memmem(t.at, t.n, text, strlen(text));
    *rest = at ? t.n - (size_t)(at - t.at) - strlen(text) : 0;
    return at ? at + strlen(text) : NULL;
}

/* Contents are texts, or if that fails lists. False: the template drops user messages. */
static bool find_form(struct chat *c, struct arena *a, const char **why)
{
    size_t rest;
    const char *first;
    if (behind(c, a, 1, said, &rest, &first))
        return true;
    c->lists = true;
    if (behind(c, a, 1, said, &rest, why))
        return true;
    *why = first
        ? first
        : arena_printf(
              a, "%s: the chat template leaves out what a user says: it was tried with a message of role 'user' whose 'content' is text",
              c->template[CHAT_USUAL].where);
    return false;
}

/* The tokens after an answer, or at the beginning of the next message. */
static void find_ends(struct chat *c, struct arena *a, const struct tokenizer *tokenizer)
{
    for (int n = 2; n <= 3 && !c->ends.list.n; n++) {
        size_t rest, at = 0;
        const char *why, *text = behind(c, a, n, answered, &rest, &why);
        while (text && at < rest && (text[at] == '\n' || text[at] == ' '))
            at++;
        int64_t id = text && at < rest ? tokenizer_special_at(tokenizer, (struct text){text + at, rest - at}) : -1;
        if (id >= 0)
            VEC_PUSH(a, &c->ends.list, id);
    }
}

/* ---- the whole ---- */

struct chat *chat_read(struct arena *a, const struct job_options *o, const struct tokenizer *tokenizer, const char **why)
{
    struct chat *c = NEW(a, struct chat);
    for (int i = 0; i < CHAT_USES; i++)
        c->template[i] = chat_template_find(a, o, (enum chat_use)i);
    const struct chat_template *usual = &c->template[CHAT_USUAL];
    *why = usual->where
        ? usual->fault
        : arena_printf(a,
                       "%s: the model has no chat template: there is no chat_template.jinja next to it, and no chat_template "
                       "in a tokenizer_config.json; name one with --chat-template FILE",
                       o->paths.text.at[0]);
    if (*why)
        return NULL;
    c->tokens = read_tokens(a, o);
    c->developer = memmem(usual->text.at, usual->text.n, "developer", strlen("developer")) != NULL;
    if (!find_form(c, a, why)) {
        chat_free(c);
        return NULL;
    }
    c->tags = chat_tags_find(usual, tokenizer);
    c->calls = chat_call_form_find(c->template, tokenizer);
    find_ends(c, a, tokenizer);
    return c;
}

void chat_free(struct chat *c)
{
    if (c)
        json_decref(c->tokens);
}
