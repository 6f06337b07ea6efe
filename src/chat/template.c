/* template: finds the chat templates of a model. */
#include "chat/chat.h"

#include <string.h>

enum { LARGEST = 1 << 20 }; /* bytes of a template */
static const char *const use_name[CHAT_USES] = {"default", "tool_use"};
static const enum model_text use_file[CHAT_USES] = {TEXT_CHAT_TEMPLATE, TEXT_TOOL_TEMPLATE};

static void parse(struct arena *a, struct chat_template *t)
{
    struct jinja_fault f;
    t->parsed = jinja_parse(a, t->text.at, t->text.n, &f);
    if (!t->parsed)
        t->fault = arena_printf(a, "%s:%d:%d: the chat template is not understood: %s", t->where, f.line, f.column, f.sentence);
}

static struct chat_template of_text(struct arena *a, const char *where, const char *text, size_t n)
{
    struct chat_template t = {.where = where, .text = {n ? memcpy(arena_alloc(a, n), text, n) : "", n}};
    size_t bad;
    if (n > LARGEST)
        t.fault = arena_printf(a, "%s: the chat template has %zu bytes, expected at most %d", where, n, LARGEST);
    else if (!text_is_utf8(text, n, &bad))
        t.fault = arena_printf(a, "%s: the chat template is not UTF-8 at byte %zu", where, bad);
    else
        parse(a, &t);
    return t;
}

static struct chat_template of_file(struct arena *a, const char *path)
{
    struct map file = map_file(path);
    struct chat_template t = of_text(a, path, (const char *)file.at, file.bytes);
    map_close(file);
    return t;
}

/* A text is the usual template; a list has templates by name, and so may an object. */
static const json_t *in_config(const json_t *member, const char *name)
{
    size_t i;
    const json_t *v;
    if (json_is_string(member))
        return strcmp(name, use_name[CHAT_USUAL]) == 0 ? member : NULL;
    if (json_is_object(member))
        return json_object_get(member, name);
    json_array_foreach(member, i, v)
    {
        const char *own = json_string_value(json_object_get(v, "name"));
        if (own && strcmp(own, name) == 0)
            return json_object_get(v, "template");
    }
    return NULL;
}

static struct chat_template of_config(struct arena *a, const char *path, enum chat_use use)
{
    json_t *root = tokenizer_json(path);
    const json_t *text = in_config(json_object_get(root, "chat_template"), use_name[use]);
    struct chat_template t = {0};
    if (json_is_string(text))
        t = of_text(a, arena_printf(a, use == CHAT_USUAL ? "%s: chat_template" : "%s: chat_template tool_use", path),
                    json_string_value(text), json_string_length(text));
    json_decref(root);
    return t;
}

struct chat_template chat_template_find(struct arena *a, const struct job_options *o, enum chat_use use)
{
    const char *config = config_beside(a, o, TEXT_TOKENIZER_CONFIG), *file = config_beside(a, o, use_file[use]);
    if (o->chat_template)
        return use == CHAT_USUAL ? of_file(a, o->chat_template) : (struct chat_template){0};
    if (file)
        return of_file(a, file);
    /* a file next to the model replaces all templates of the configuration */
    bool others = use != CHAT_USUAL && config_beside(a, o, use_file[CHAT_USUAL]);
    return config && !others ? of_config(a, config, use) : (struct chat_template){0};
}
