/* pooling: how vectors of tokens are combined: by the option, or by sentence-transformers' 1_Pooling/config.json. */
#include "decode/embed/embed.h"

#include <string.h>

static const struct {
    const char *option, *key, *mode; /* in the file: one flag per mode, or, in later versions, the mode's name */
    enum embed_pooling pooling;
} known[] = {{"mean", "pooling_mode_mean_tokens", "mean", EMBED_MEAN},
             {"last", "pooling_mode_lasttoken", "lasttoken", EMBED_LAST},
             {"cls", "pooling_mode_cls_token", "cls", EMBED_FIRST}};
enum { KNOWN = sizeof known / sizeof *known };

enum embed_pooling embed_pooling_named(const char *name)
{
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(known[i].option, name) == 0)
            return known[i].pooling;
    fail_usage("--pooling is '%s', expected mean, last or cls", name);
}

static int find_known(const char *name, bool key)
{
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(key ? known[i].key : known[i].mode, name) == 0)
            return i;
    return -1;
}

/* The mode that the file enables; -1, and *other: unknown, or several. */
static int find_mode(json_t *root, const char **other)
{
    const char *mode = json_string_value(json_object_get(root, "pooling_mode")), *key;
    int found = -1, count = 0;
    json_t *v;
    *other = mode ? mode : "nothing";
    if (mode)
        return find_known(mode, false);
    json_object_foreach(root, key, v)
    {
        if (strncmp(key, "pooling_mode_", 13) != 0 || !json_is_true(v))
            continue;
        *other = count++ ? "several" : key;
        found = find_known(key, true);
    }
    return count == 1 ? found : -1;
}

enum embed_pooling embed_pooling_asked(struct arena *a, const struct job_options *o, const char **says, const char **why)
{
    const char *path = config_beside(a, o, TEXT_POOLING), *other;
    json_error_t error;
    *why = NULL;
    *says = "--pooling";
    if (o->pooling)
        return embed_pooling_named(o->pooling);
    json_t *root = path ? json_load_file(path, 0, &error) : NULL;
    if (path && !root)
        fail("%s: line %d: %s", path, error.line, error.text);
    if (!root)
        return EMBED_UNKNOWN;
    int i = find_mode(root, &other);
    *says = path;
    if (i < 0)
        *why = arena_printf(a, "%s pools by %.60s, which this server does not: say --pooling mean, last or cls", path, other);
    json_decref(root);
    return i < 0 ? EMBED_UNKNOWN : known[i].pooling;
}
