/* model_config: the longest text in tokens by the configuration next to a model; models with rotary embeddings have no table that tells.
 * The names come from transformers' configuration classes and genai_config.json. */
#include "plan/input/input.h"

#include <math.h>
#include <string.h>

enum { LARGEST_CONFIG = 1 << 26 };

/* This key is the limit of a text. */
static const char text_key[] = "model_max_length";
/* These keys may size a table. The first one present counts. */
static const struct limit_key {
    const char *name;
    enum config_side side;
} limit_keys[] = {
    {"max_position_embeddings", CONFIG_BOTH},
    {"n_positions", CONFIG_BOTH},
    {"max_target_positions", CONFIG_DECODER},
    {"max_decoder_position_embeddings", CONFIG_DECODER},
    {"max_encoder_position_embeddings", CONFIG_ENCODER},
    {"n_ctx", CONFIG_BOTH},
    {"max_seq_len", CONFIG_BOTH},
    {"max_seq_length", CONFIG_BOTH},
    {"max_sequence_length", CONFIG_BOTH},
    {"seq_length", CONFIG_BOTH},
    {"context_length", CONFIG_BOTH},
};
/* The parts of a file that describe a text model, outermost first. */
static const struct config_part {
    const char *name;
    enum config_side side;
} config_parts[] = {
    {"text_config", CONFIG_BOTH},  {"model", CONFIG_BOTH},      {"decoder", CONFIG_DECODER},
    {"generator", CONFIG_DECODER}, {"encoder", CONFIG_ENCODER}, {"text_encoder", CONFIG_ENCODER},
};
static const enum model_text config_files[] = {TEXT_CONFIG, TEXT_GENAI_CONFIG};
enum {
    LIMIT_KEYS = sizeof limit_keys / sizeof *limit_keys,
    CONFIG_PARTS = sizeof config_parts / sizeof *config_parts,
    CONFIG_FILES = sizeof config_files / sizeof *config_files
};

static bool is_of_side(enum config_side of, enum config_side asked)
{
    return of == CONFIG_BOTH || of == asked;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------------ */

/* Python writes NaN and Infinity, which are invalid JSON: replaces them, since no number that counts here is one. */
static void drop_constants(char *text, size_t n)
{
    static const char *const constants[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        for (size_t k = 0; !quoted && i < n && k < sizeof constants / sizeof *constants; k++) {
            size_t length = strlen(constants[k]);
            if (n - i < length || memcmp(text + i, constants[k], length) != 0)
                continue;
            memset(text + i, ' ', length);
            memcpy(text + i, "-1", 2);
        }
    }
}

/* NULL, with *note, if the file holds no JSON object. Other programs have files of this name, too. */
static json_t *read_config(struct arena *a, const char *path, const char **note)
{
    struct map file = map_file(path);
    json_error_t error = {.line = 1};
    json_t *root = NULL;
    if (file.bytes > LARGEST_CONFIG)
        (void)snprintf(error.text, sizeof error.text, "it has %zu bytes", file.bytes);
    else {
        char *text = arena_alloc(a, file.bytes + 1); /* may contain zero bytes */
        if (file.bytes)
            memcpy(text, file.at, file.bytes);
        drop_constants(text, file.bytes);
        root = json_loadb(text, file.bytes, JSON_REJECT_DUPLICATES, &error);
    }
    map_close(file);
    if (root && !json_is_object(root))
        (void)snprintf(error.text, sizeof error.text, "expected an object, found %s", json_kind(root));
    if (json_is_object(root))
        return root;
    *note = arena_printf(a, "%s: line %d: %s: no limit of tokens is taken from it", path, error.line < 1 ? 1 : error.line, error.text);
    json_decref(root);
    return NULL;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------------- */

static const double most_tokens = (double)((int64_t)1 << 62);

/* Reads a number of tokens; 2048.0 is one. False: it is none, and *count is unchanged. */
static bool take_count(const json_t *v, int64_t *count)
{
    double x = json_number_value(v);
    if (!json_is_number(v) || !(x >= 1) || x != floor(x))
        return false;
    *count = json_is_integer(v) ? json_integer_value(v) : (int64_t)fmin(x, most_tokens);
    return true;
}

/* A value in the words of a note. */
static const char *value_text(struct arena *a, const json_t *v)
{
    return json_is_number(v) ? arena_printf(a, "%.15g", json_number_value(v)) : json_kind(v);
}

/* ---- rotary embeddings --------------------------------------------------------------------------------------------------------- */

/* Whether the stated limit is the one before RoPE scaling, as in transformers' modeling_rope_utils.py. For longrope, su and llama3 it is
 * the limit after scaling; other types are not known to extend a model. */
static bool counts_before(const char *type)
{
    static const char *const types[] = {"linear", "dynamic", "yarn"};
    return NAMED_ROW(types, type) >= 0;
}

static int64_t stretched(double tokens, double factor)
{
    return (int64_t)fmin(floor(tokens * factor), most_tokens);
}

/* Applies RoPE scaling. If the original length is stated, too, the limit may mean either. An invalid factor: the limit is unknown. */
static void stretch_by(struct arena *a, const char *path, const char *name, const json_t *scaling, struct config_limit *limit)
{
    const json_t *factor = json_object_get(scaling, "factor");
    int64_t before, most;
    if (!factor || json_is_null(factor))
        return;
    if (!(json_number_value(factor) >= 1)) {
        limit->note = arena_printf(a, "%s: %s: factor is %s, expected a number of at least 1: no limit of tokens is taken from it", path,
                                   name, value_text(a, factor));
        limit->tokens = -1;
        return;
    }
    if (!take_count(json_object_get(scaling, "original_max_position_embeddings"), &before))
        before = limit->tokens;
    most = stretched((double)before, json_number_value(factor));
    if (most <= limit->tokens)
        return;
    limit->says = arena_printf(a, "%s, and by its %s the text has at most %lld tokens", limit->says, name, (long long)most);
    limit->tokens = most;
}

static void stretch(struct arena *a, const char *path, const json_t *part, struct config_limit *limit)
{
    static const char *const names[] = {"rope_scaling", "rope_parameters"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *scaling = json_object_get(part, names[i]), *type = json_object_get(scaling, "rope_type");
        type = type ? type : json_object_get(scaling, "type");
        if (!json_is_string(type) || !counts_before(json_string_value(type)))
            continue;
        stretch_by(a, path, arena_printf(a, "%s (%s)", names[i], json_string_value(type)), scaling, limit);
        return;
    }
}

/* ---- the limit ------------------------------------------------------------------------------------------------------------------ */

/* Attention with relative positions has no last position (T5, DeBERTa). Such a model may also have a position table; the rows of the table
 * in the graph then count. */
static bool has_distances(const json_t *part)
{
    int64_t buckets;
    return take_count(json_object_get(part, "relative_attention_num_buckets"), &buckets) ||
        json_is_true(json_object_get(part, "relative_attention"));
}

/* Reads a limit; null and -1 mean none. */
static bool take_limit(struct arena *a, const char *path, const json_t *part, const char *key, struct config_limit *limit)
{
    const json_t *v = json_object_get(part, key);
    if (!v || json_is_null(v) || json_number_value(v) == -1)
        return false;
    if (!take_count(v, &limit->tokens)) {
        limit->note = arena_printf(a, "%s: %s is %s, expected a number of tokens: no limit of tokens is taken from it", path, key,
                                   value_text(a, v));
        return false;
    }
    limit->says = arena_printf(a, "%s: %s is %lld", path, key, (long long)limit->tokens);
    return true;
}

static bool take_stated(struct arena *a, const char *path, const json_t *part, enum config_side side, struct config_limit *limit)
{
    if (take_limit(a, path, part, text_key, limit))
        return true;
    for (int i = 0; i < LIMIT_KEYS && !has_distances(part); i++)
        if (is_of_side(limit_keys[i].side, side) && take_limit(a, path, part, limit_keys[i].name, limit))
            return true;
    return false;
}

static bool take_from_part(struct arena *a, const char *path, const json_t *part, enum config_side side, struct config_limit *limit)
{
    bool found = take_stated(a, path, part, side, limit);
    if (found)
        stretch(a, path, part, limit);
    return found;
}

static bool take_from_file(struct arena *a, const char *path, enum config_side side, struct config_limit *limit)
{
    json_t *root = read_config(a, path, &limit->note);
    bool found = take_from_part(a, path, root, side, limit);
    for (int i = 0; !found && i < CONFIG_PARTS; i++)
        if (is_of_side(config_parts[i].side, side))
            found = take_from_part(a, path, json_object_get(root, config_parts[i].name), side, limit);
    json_decref(root);
    return found;
}

struct config_limit model_config_limit(struct arena *a, const char *folder, enum config_side side)
{
    struct config_limit limit = {.tokens = -1};
    for (int i = 0; i < CONFIG_FILES; i++) {
        const char *path = path_beside(a, folder, model_texts[config_files[i]]);
        if (path && take_from_file(a, path, side, &limit))
            break;
    }
    return limit;
}
