/* fields: unread fields of a request: those that would affect the text and are not implemented, and the rest, which has no effect. */
#include "serve/request/request.h"

#include <string.h>

enum field_use {
    STEERS,    /* not implemented; null, false, 0, empty values and the values below have no effect */
    STEERS_BUT /* not implemented; only null and the values below have no effect */
};
struct field {
    const char *name;
    enum field_use use;
    const char *neutral; /* a list of JSON; NULL: none */
};

/* Fields of OpenAI's API, and of the servers of vLLM, llama.cpp and TGI. docs/serving.md lists them. */
static const struct field fields[] = {
    /* returned in addition to the text */
    {"prompt_logprobs", STEERS, NULL},
    {"n_probs", STEERS, NULL},
    {"suffix", STEERS, NULL},
    {"prompt_embeds", STEERS, NULL},
    {"image_data", STEERS, NULL},
    {"multi_modal_data", STEERS, NULL},
    {"messages", STEERS, NULL},
    {"chat_template", STEERS, NULL},
    {"add_generation_prompt", STEERS_BUT, "[true]"},
    {"continue_final_message", STEERS, NULL},
    {"modalities", STEERS, "[[\"text\"]]"},
    {"audio", STEERS, NULL},
    {"web_search_options", STEERS_BUT, NULL},
    /* scores */
    {"repeat_penalty", STEERS_BUT, "[1]"},
    {"length_penalty", STEERS_BUT, "[1]"},
    {"no_repeat_ngram_size", STEERS, NULL},
    {"bad_words", STEERS, NULL},
    {"allowed_token_ids", STEERS, NULL},
    {"logits_processors", STEERS, NULL},
    {"watermark", STEERS, NULL},
    {"lora", STEERS, NULL},
    {"adapter_id", STEERS, NULL},
    /* the choice of a token */
    {"typical_p", STEERS_BUT, "[1]"},
    {"tfs_z", STEERS_BUT, "[1]"},
    {"top_a", STEERS, NULL},
    {"top_n_sigma", STEERS, "[-1]"},
    {"epsilon_cutoff", STEERS, NULL},
    {"eta_cutoff", STEERS, NULL},
    {"min_keep", STEERS, NULL},
    {"mirostat", STEERS, NULL},
    {"mirostat_mode", STEERS, NULL},
    {"dry_multiplier", STEERS, NULL},
    {"xtc_probability", STEERS, NULL},
    {"dynatemp_range", STEERS, NULL},
    {"adaptive_target", STEERS, "[-1]"},
    {"samplers", STEERS, NULL},
    {"do_sample", STEERS_BUT, "[true]"},
    {"use_beam_search", STEERS, NULL},
    {"num_beams", STEERS_BUT, "[1]"},
    /* ends of texts */
    {"ignore_eos", STEERS, NULL},
    {"min_tokens", STEERS, NULL},
    {"stop_token_ids", STEERS, NULL},
    {"include_stop_str_in_output", STEERS, NULL},
    {"skip_special_tokens", STEERS_BUT, "[true]"},
    {"n_predict", STEERS_BUT, NULL},
    {"max_new_tokens", STEERS_BUT, NULL},
    {"n_indent", STEERS, NULL},
    {"t_max_predict_ms", STEERS, "[-1]"},
    {"truncate", STEERS, NULL},
    {"truncate_prompt_tokens", STEERS, NULL},
    /* forms of the text */
    {"structured_outputs", STEERS, NULL},
    {"guided_json", STEERS, NULL},
    {"guided_regex", STEERS, NULL},
    {"guided_choice", STEERS, NULL},
    {"guided_grammar", STEERS, NULL},
    {"guided_json_object", STEERS, NULL},
    {"structural_tag", STEERS, NULL},
    {"tools", STEERS, NULL},
    {"tool_choice", STEERS, "[\"none\", \"auto\"]"},
    {"functions", STEERS, NULL},
    {"function_call", STEERS, "[\"none\", \"auto\"]"},
};

static bool is_known(const char *name, const struct text_list *read)
{
    return NAMED_ROW(fields, name) >= 0 || NAMED_AT(read->text.at, read->text.n, name) >= 0;
}

/* ---- values without effect ---- */

static bool is_number(const json_t *v, double x)
{
    return json_is_number(v) && !(json_number_value(v) < x || json_number_value(v) > x);
}

static bool is_nothing(const json_t *v)
{
    return json_is_false(v) || is_number(v, 0) || (json_is_string(v) && json_string_length(v) == 0) ||
        (json_is_array(v) && json_array_size(v) == 0) || (json_is_object(v) && json_object_size(v) == 0);
}

static bool is_listed(const char *list, const json_t *v)
{
    json_t *values = list ? json_loads(list, 0, NULL) : json_array(), *one;
    bool found = false;
    size_t i;
    require(values);
    json_array_foreach(values, i, one)
    {
        found |= json_is_number(one) ? is_number(v, json_number_value(one)) : json_equal(one, v) == 1;
    }
    json_decref(values);
    return found;
}

static bool asks_for_something(const struct field *f, const json_t *v)
{
    return !json_is_null(v) && !(f->use == STEERS && is_nothing(v)) && !is_listed(f->neutral, v);
}

static bool is_own(const char *const *own, const char *name)
{
    while (*own && strcmp(*own, name) != 0)
        own++;
    return *own != NULL;
}

const char *fields_unsupported(const json_t *root, const char *const *own)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *v = json_object_get(root, fields[i].name);
        if (v && asks_for_something(&fields[i], v) && !is_own(own, fields[i].name))
            return fields[i].name;
    }
    return NULL;
}

/* ---- the rest ---- */

enum { NAME = 48, NAMES = 16 }; /* bytes of a name, names */

/* For a header and a log: characters other than plain letters are percent-encoded. */
static const char *plain_name(struct arena *a, const char *name)
{
    struct text_builder b = {.arena = a};
    size_t i = 0;
    for (; name[i] && i < NAME; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
        const char *escaped = plain ? "" : arena_printf(a, "%%%02X", c);
        text_put(&b, plain ? &name[i] : escaped, plain ? 1 : 3);
    }
    text_put(&b, name[i] ? "..." : "", name[i] ? 4 : 1);
    return text_built(&b).at;
}

struct text_list fields_ignored(struct arena *a, json_t *root, const struct text_list *read)
{
    struct text_list names = {0};
    const char *name;
    json_t *v;
    json_object_foreach(root, name, v)
    {
        if (is_known(name, read) || json_is_null(v))
            continue;
        if (names.text.n == NAMES) {
            VEC_PUSH(a, &names.text, "...");
            break;
        }
        VEC_PUSH(a, &names.text, plain_name(a, name));
    }
    return names;
}
