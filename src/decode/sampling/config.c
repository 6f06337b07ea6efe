/* config: decoding settings in generation_config.json, genai_config.json and tokenizer_config.json next to a model. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "decode/sampling/sampling.h"
#include "plan/input/input.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

static json_t *read_json(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root)
        fail("%s: line %d: %s", path, error.line, error.text);
    return root;
}

/* In genai_config.json, the object with what generation_config.json has at the top. */
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

#ifdef HAVE_TEXT
/* The id of a text, in {"ID": token, ..}, or [{"id": ID, ..}, ..]; -1: not found. */
static int64_t id_of(json_t *tokens, const json_t *text)
{
    const char *key;
    json_t *v;
    size_t i;
    int64_t id;
    json_object_foreach(tokens, key, v)
    {
        const json_t *own = json_token_text(v);
        if (own && json_equal((json_t *)(uintptr_t)own, (json_t *)(uintptr_t)text) && i64_parse(key, 0, INT32_MAX, &id))
            return id;
    }
    json_array_foreach(tokens, i, v)
    {
        const json_t *own = json_is_object(v) ? json_token_text(v) : NULL, *number = json_object_get(v, "id");
        if (own && json_equal((json_t *)(uintptr_t)own, (json_t *)(uintptr_t)text) && json_is_integer(number))
            return json_integer_value(number);
    }
    return -1;
}

/* tokenizer_config.json names the end by its text; it or tokenizer.json has its id. If neither has it, no token ends a text. */
static void add_end_of_tokenizer(struct arena *a, const struct job_options *o, struct end_tokens *ends)
{
    const char *path = config_beside(a, o, TEXT_TOKENIZER_CONFIG);
    const char *tokens = o->tokenizer ? o->tokenizer : config_beside(a, o, TEXT_TOKENIZER);
    json_t *config = path ? tokenizer_json(path) : NULL;
    const json_t *text = json_token_text(json_object_get(config, "eos_token"));
    int64_t id = text ? id_of(json_object_get(config, "added_tokens_decoder"), text) : -1;
    json_t *other = text && id < 0 && tokens ? tokenizer_json(tokens) : NULL;
    id = other ? id_of(json_object_get(other, "added_tokens"), text) : id;
    if (id >= 0)
        VEC_PUSH(a, &ends->list, id);
    json_decref(config);
    json_decref(other);
}
#else
static void add_end_of_tokenizer(struct arena *a, const struct job_options *o, struct end_tokens *ends)
{
    (void)a, (void)o, (void)ends;
}
#endif

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
    if (!ends.list.n)
        add_end_of_tokenizer(a, o, &ends);
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
