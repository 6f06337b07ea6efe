/* tools: functions that a model may call, and which it must call. */
#include "serve/request/request.h"

#include <string.h>

static const char *name_of(const json_t *tool)
{
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

enum { LONGEST_NAME = 64 };

static bool is_name(const char *name)
{
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t n = name ? strlen(name) : 0;
    return n >= 1 && n <= LONGEST_NAME && strspn(name, signs) == n;
}

/* The arguments of a call are an object, so the schema must accept objects, and no other type if it names one. */
static bool takes_objects(const json_t *parameters)
{
    const json_t *type = json_object_get(parameters, "type");
    return !parameters || json_is_null(parameters) ||
        (json_is_object(parameters) && (!type || (json_is_string(type) && strcmp(json_string_value(type), "object") == 0)));
}

static bool is_repeated(const json_t *list, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(name_of(json_array_get(list, k)), name_of(json_array_get(list, i))) == 0)
            return true;
    return false;
}

/* The error of a tool, as what was expected; NULL: valid. Earlier ones are valid. */
static const char *tool_fault(const json_t *list, size_t i)
{
    const json_t *tool = json_array_get(list, i), *function = json_object_get(tool, "function");
    const char *type = json_string_value(json_object_get(tool, "type"));
    if (!type || strcmp(type, "function") != 0)
        return ".type: expected \"function\": there are no other tools";
    if (!json_is_object(function))
        return ".function: expected an object with a name";
    if (!is_name(name_of(tool)))
        return ".function.name: expected 1 to 64 letters of ASCII, digits, _ and -";
    if (is_repeated(list, i))
        return ".function.name: an earlier tool has this name";
    if (!takes_objects(json_object_get(function, "parameters")))
        return ".function.parameters: expected a schema of the type \"object\"";
    return NULL;
}

static const json_t *read_list(struct reading *r)
{
    const json_t *list = request_given(r, "tools");
    if (list && (!json_is_array(list) || json_array_size(list) > SERVE_TOOLS))
        request_refuse(r, "tools", arena_printf(r->call->arena, "a list of at most %d functions", SERVE_TOOLS));
    for (size_t i = 0; !r->wrong && i < json_array_size(list); i++) {
        const char *fault = tool_fault(list, i);
        if (fault)
            request_blame(r, "tools", arena_printf(r->call->arena, "tools[%zu]%s", i, fault));
    }
    return json_array_size(list) ? list : NULL;
}

static bool has_tool(const json_t *tools, const char *name)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(tools, i, tool)
    {
        const char *own = name_of(tool);
        if (own && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

static void read_named(struct reading *r, const json_t *v, struct tools_asked *t)
{
    const char *type = json_string_value(json_object_get(v, "type"));
    t->only = name_of(v);
    t->must = true;
    if (!type || strcmp(type, "function") != 0 || !t->only)
        request_refuse(r, "tool_choice", "\"none\", \"auto\", \"required\", or {\"type\": \"function\", \"function\": {\"name\": ...}}");
    else if (!has_tool(t->tools, t->only))
        request_blame(r, "tool_choice", arena_printf(r->call->arena, "tool_choice: '%.100s' is none of the tools", t->only));
}

static void read_choice(struct reading *r, struct tools_asked *t)
{
    const json_t *v = request_given(r, "tool_choice");
    const char *word = json_string_value(v);
    if (word && strcmp(word, "none") == 0)
        t->tools = NULL;
    else if (word && strcmp(word, "required") == 0) {
        t->must = true;
        if (!t->tools)
            request_blame(r, "tool_choice", "tool_choice: there are no tools to call");
    } else if (v && !(word && strcmp(word, "auto") == 0))
        read_named(r, v, t);
}

struct tools_asked tools_read(struct reading *r)
{
    struct tools_asked t = {.tools = read_list(r)};
    read_choice(r, &t);
    t.single = !request_flag(r, "parallel_tool_calls", true) || t.only;
    if (r->wrong)
        t.tools = NULL;
    return t;
}
