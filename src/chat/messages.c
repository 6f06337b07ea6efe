/* messages: checks a request's messages, and converts them to the form of Hugging Face's templates. */
#include "chat/chat.h"

#include <string.h>

struct reader {
    const struct chat *chat;
    struct arena *arena;
    const char *why; /* the first fault */
};

static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
enum { ROLES = sizeof roles / sizeof *roles };

bool chat_is_role(struct text t)
{
    bool is = false;
    for (int i = 0; i < ROLES; i++)
        is |= text_eq(t, text_of(roles[i]));
    return is;
}

static void refuse(struct reader *r, const char *sentence)
{
    r->why = r->why ? r->why : sentence;
}

/* ---- contents ---- */

/* A part of another type has no text, and is refused by its type. */
static const json_t *part_text(struct reader *r, size_t message, size_t i, const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, "text");
    if (!type)
        refuse(r, arena_printf(r->arena, "messages[%zu].content[%zu]: expected an object with a type", message, i));
    else if (strcmp(type, "text") != 0)
        refuse(r,
               arena_printf(r->arena, "messages[%zu].content[%zu]: a part of type '%.100s' is not supported: expected \"text\"", message, i,
                            type));
    else if (!json_is_string(text))
        refuse(r, arena_printf(r->arena, "messages[%zu].content[%zu].text: expected a text", message, i));
    return text;
}

static json_t *joined(struct reader *r, size_t message, const json_t *parts)
{
    struct text_builder b = {.arena = r->arena};
    size_t i;
    const json_t *part;
    json_array_foreach(parts, i, part)
    {
        const json_t *text = part_text(r, message, i, part);
        if (r->why)
            return NULL;
        text_put(&b, "\n", i > 0);
        text_put(&b, json_string_value(text), json_string_length(text));
    }
    return json_stringn(text_built(&b).at, text_built(&b).n);
}

/* A text, or one text part if the template takes only lists. */
static json_t *content_of(struct reader *r, size_t message, const json_t *given)
{
    json_t *text = json_is_string(given) ? json_incref((json_t *)(uintptr_t)given)
        : json_is_array(given)           ? joined(r, message, given)
                                         : NULL;
    if (!text)
        refuse(r, arena_printf(r->arena, "messages[%zu].content: expected a text, or a list of parts", message));
    return text && r->chat->lists ? json_pack("[{s:s, s:o}]", "type", "text", "text", text) : text;
}

/* ---- calls of tools ---- */

/* OpenAI's arguments are a JSON text; templates take an object. */
static void open_arguments(json_t *call)
{
    json_t *function = json_object_get(call, "function");
    const json_t *text = json_object_get(function, "arguments");
    json_t *arguments = json_is_string(text) ? json_loadb(json_string_value(text), json_string_length(text), JSON_ALLOW_NUL, NULL) : NULL;
    if (json_is_object(arguments))
        (void)json_object_set(function, "arguments", arguments);
    json_decref(arguments);
}

static void open_calls(struct reader *r, size_t message, json_t *calls)
{
    size_t i;
    json_t *call;
    if (calls && !json_is_array(calls))
        refuse(r, arena_printf(r->arena, "messages[%zu].tool_calls: expected a list", message));
    json_array_foreach(calls, i, call)
    {
        if (!json_is_object(json_object_get(call, "function")))
            refuse(r, arena_printf(r->arena, "messages[%zu].tool_calls[%zu]: expected an object with a function", message, i));
        open_arguments(call);
    }
}

/* ---- messages ---- */

static const char *role_of(struct reader *r, size_t message, const json_t *given)
{
    const char *role = json_string_value(json_object_get(given, "role"));
    if (!role || NAMED_AT(roles, ROLES, role) < 0) {
        refuse(r,
               arena_printf(r->arena, "messages[%zu].role: expected system, developer, user, assistant or tool, found %s%.100s", message,
                            role ? "" : "none", role ? role : ""));
        return NULL;
    }
    return strcmp(role, "developer") == 0 && !r->chat->developer ? "system" : role;
}

/* An answer with tool calls may have no content. */
static bool may_be_empty(const json_t *given, const char *role)
{
    return strcmp(role, "assistant") == 0 && json_array_size(json_object_get(given, "tool_calls")) > 0;
}

static json_t *message_of(struct reader *r, size_t i, const json_t *given)
{
    const char *role = json_is_object(given) ? role_of(r, i, given) : NULL;
    if (!json_is_object(given))
        refuse(r, arena_printf(r->arena, "messages[%zu]: expected an object", i));
    if (!role)
        return NULL;
    json_t *message = json_deep_copy(given), *content = json_object_get(given, "content");
    (void)json_object_set_new(message, "role", json_string(role));
    if (!(may_be_empty(given, role) && (!content || json_is_null(content))))
        (void)json_object_set_new(message, "content", content_of(r, i, content));
    open_calls(r, i, json_object_get(message, "tool_calls"));
    return message;
}

json_t *chat_messages(const struct chat *c, struct arena *a, const json_t *given, const char **why)
{
    struct reader r = {.chat = c, .arena = a};
    json_t *list = json_array();
    size_t i;
    const json_t *v;
    if (!json_is_array(given) || json_array_size(given) == 0)
        refuse(&r, "messages: expected a list of at least one message");
    json_array_foreach(given, i, v)
    {
        json_t *message = r.why ? NULL : message_of(&r, i, v);
        if (message)
            (void)json_array_append_new(list, message);
    }
    *why = r.why;
    if (r.why) {
        json_decref(list);
        return NULL;
    }
    return list;
}
