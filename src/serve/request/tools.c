/* tools: the functions that a model may call, and which it is to call. */
#include "serve/request/request.h"

#include <string.h>

static const char *name_of(const json_t *tool)
{
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static bool is_function(const json_t *tool)
{
    const char *type = json_string_value(json_object_get(tool, "type")), *name = name_of(tool);
    const json_t *parameters = json_object_get(json_object_get(tool, "function"), "parameters");
    return type && strcmp(type, "function") == 0 && name && *name &&
        (!parameters || json_is_null(parameters) || json_is_object(parameters));
}

static const json_t *read_list(struct reading *r)
{
    const json_t *list = request_given(r, "tools"), *tool;
    size_t i;
    if (list && !json_is_array(list))
        request_refuse(r, "tools", "a list of functions");
    json_array_foreach(list, i, tool)
    {
        if (!is_function(tool))
            request_refuse(
                r, "tools",
                "a list of objects of type \"function\", each with a function, its name, and its parameters as a schema, if any");
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
