/* config: what generation_config.json and genai_config.json beside a model say of decoding. */
#include "decode/sampling/sampling.h"

#include <string.h>

static json_t *read_json(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root)
        fail("%s: line %d: %s", path, error.line, error.text);
    return root;
}

/* Of genai_config.json, the part that has what generation_config.json has on top. */
static const enum model_text file[] = {TEXT_GENERATION_CONFIG, TEXT_GENAI_CONFIG};
static const char *const end_part[] = {NULL, "model"}, *const sampling_part[] = {NULL, "search"};
enum { FILES = sizeof file / sizeof *file };

static const json_t *part_of(const json_t *root, const char *part)
{
    return part ? json_object_get(root, part) : root;
}

static void add_ends(struct arena *a, const char *path, const json_t *v, struct end_tokens *ends)
{
    size_t n = json_is_array(v) ? json_array_size(v) : v && !json_is_null(v);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_integer(id))
            fail("%s: eos_token_id: expected token ids", path);
        VEC_PUSH(a, &ends->list, json_integer_value(id));
    }
}

struct end_tokens config_ends(struct arena *a, const struct job_options *o)
{
    struct end_tokens ends = {0};
    for (int i = 0; i < FILES && !ends.list.n; i++) {
        const char *path = config_beside(a, o, file[i]);
        if (!path)
            continue;
        json_t *root = read_json(path);
        add_ends(a, path, json_object_get(part_of(root, end_part[i]), "eos_token_id"), &ends);
        json_decref(root);
    }
    return ends;
}

bool config_is_end(const struct end_tokens *ends, int64_t token)
{
    for (int i = 0; i < ends->list.n; i++)
        if (ends->list.at[i] == token)
            return true;
    return false;
}

static int64_t read_start(struct arena *a, const struct job_options *o)
{
    const char *path = config_beside(a, o, TEXT_GENERATION_CONFIG);
    json_t *root = path ? read_json(path) : NULL;
    const json_t *id = json_object_get(root, "decoder_start_token_id");
    bool given = id && !json_is_null(id);
    int64_t start = json_integer_value(id);
    if (given && (!json_is_integer(id) || start < 0 || start > INT32_MAX))
        fail("%s: decoder_start_token_id: expected a token id", path);
    json_decref(root);
    return start;
}

int64_t config_start(struct arena *a, struct comm *all, const struct job_options *o)
{
    int64_t start = o->start;
    if (start < 0 && all->rank == 0)
        start = read_start(a, o);
    comm_from_first(all, "the start token", &start, sizeof start);
    return start;
}

json_t *config_sampling(struct arena *a, const struct job_options *o, const char **path)
{
    for (int i = 0; i < FILES; i++) {
        *path = config_beside(a, o, file[i]);
        if (!*path)
            continue;
        json_t *root = read_json(*path), *part = json_incref((json_t *)(uintptr_t)part_of(root, sampling_part[i]));
        json_decref(root);
        if (json_is_true(json_object_get(part, "do_sample")))
            return part;
        json_decref(part);
    }
    return NULL;
}
