/* Metadata of the rank files of stages: what comes from where and goes where, as numbers of stages. */
#include "ir/rank_meta.h"

#include <string.h>

static const char *key_of(const struct graph *g, const char *prefix, const char *name)
{
    return arena_printf(g->arena, "%s%s", prefix, name);
}

void rank_meta_set_stage(struct graph *g, int stage, int stages)
{
    graph_set_meta(g, RANK_META_STAGE, arena_printf(g->arena, "%d", stage));
    graph_set_meta(g, RANK_META_STAGES, arena_printf(g->arena, "%d", stages));
}

bool rank_meta_is_stage(const struct graph *g)
{
    return graph_meta(g, RANK_META_STAGES) != NULL;
}

/* The number at the start of the text, before a comma, a bar or the end. */
static int stage_number(const struct graph *g, const char *key, const char *text)
{
    int stages = g->rank_meta ? g->rank_meta->stages : 1;
    int64_t stage;
    if (!i64_parse(arena_strndup(g->arena, text, strcspn(text, ",|")), 0, stages - 1, &stage))
        fail("%s: metadata '%s' is '%s', expected numbers of stages below %d", graph_file(g), key, graph_meta(g, key), stages);
    return (int)stage;
}

void rank_meta_set_sender(struct graph *g, const char *input, int stage)
{
    graph_set_meta(g, key_of(g, RANK_META_FROM, input), arena_printf(g->arena, "%d", stage));
}

int rank_meta_sender(const struct graph *g, const char *input)
{
    const char *key = key_of(g, RANK_META_FROM, input), *text = graph_meta(g, key);
    return text ? stage_number(g, key, text) : -1;
}

/* "1,2" */
void rank_meta_set_readers(struct graph *g, const char *output, int n, const int *stage)
{
    const char *text = "";
    for (int i = 0; i < n; i++)
        text = arena_printf(g->arena, "%s%s%d", text, i ? "," : "", stage[i]);
    graph_set_meta(g, key_of(g, RANK_META_TO, output), text);
}

int rank_meta_reader(const struct graph *g, const char *output, int i)
{
    const char *key = key_of(g, RANK_META_TO, output), *text = graph_meta(g, key);
    while (text && i-- > 0) {
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    return text ? stage_number(g, key, text) : -1;
}

void rank_meta_set_addend(struct graph *g, const char *value)
{
    graph_set_meta(g, key_of(g, RANK_META_ADDEND, value), "sum");
}

bool rank_meta_is_addend(const struct graph *g, const char *value)
{
    return graph_meta(g, key_of(g, RANK_META_ADDEND, value)) != NULL;
}

/* "STAGE|TYPE|NAME" */
void rank_meta_set_result(struct graph *g, int i, const struct rank_result *r)
{
    graph_set_meta(g, arena_printf(g->arena, RANK_META_RESULT "%d", i),
                   arena_printf(g->arena, "%d|%s|%s", r->stage, type_str(g->arena, &r->type), r->name));
}

bool rank_meta_result(struct graph *g, int i, struct rank_result *r)
{
    const char *key = arena_printf(g->arena, RANK_META_RESULT "%d", i), *text = graph_meta(g, key), *error = NULL;
    if (!text)
        return false;
    char *type = strchr(arena_strdup(g->arena, text), '|'), *name = type ? strchr(type + 1, '|') : NULL;
    if (!name)
        fail("%s: metadata '%s' is '%s', expected STAGE|TYPE|NAME", graph_file(g), key, text);
    *name++ = '\0';
    r->name = name;
    r->stage = stage_number(g, key, text);
    if (!type_parse(g->alg, type + 1, 0, &r->type, &error))
        fail("%s: metadata '%s': %s", graph_file(g), key, error);
    return true;
}

void rank_meta_set_other_state(struct graph *g, int i, const struct rank_state *s)
{
    graph_set_meta(g, arena_printf(g->arena, RANK_META_OTHER_STATE "%d", i), rank_meta_state_text(g->arena, s));
}

bool rank_meta_other_state(const struct graph *g, int i, struct rank_state *s)
{
    const char *text = graph_meta(g, arena_printf(g->arena, RANK_META_OTHER_STATE "%d", i));
    if (text)
        *s = rank_meta_read_state(g, text);
    return text != NULL;
}

bool rank_meta_kept_elsewhere(const struct graph *g, const char *input)
{
    struct rank_state state;
    for (int i = 0; rank_meta_other_state(g, i, &state); i++)
        if (strcmp(state.past, input) == 0)
            return true;
    return false;
}

void rank_meta_set_mask_use(struct graph *g, const char *input, const char *use)
{
    graph_set_meta(g, key_of(g, RANK_META_MASK, input), use);
}

const char *rank_meta_mask_use(const struct graph *g, const char *input)
{
    return graph_meta(g, key_of(g, RANK_META_MASK, input));
}

/* "ROWS|NODE" */
void rank_meta_set_tables(struct graph *g, const char *input, int64_t rows, const char *by_place)
{
    graph_set_meta(g, key_of(g, RANK_META_TABLES, input), arena_printf(g->arena, "%lld|%s", (long long)rows, by_place ? by_place : ""));
}

void rank_meta_tables(const struct graph *g, const char *input, int64_t *rows, const char **by_place)
{
    const char *key = key_of(g, RANK_META_TABLES, input), *text = graph_meta(g, key), *bar = text ? strchr(text, '|') : NULL;
    *rows = -1;
    *by_place = NULL;
    if (!text)
        return;
    if (!bar || !i64_parse(arena_strndup(g->arena, text, (size_t)(bar - text)), -1, INT64_MAX, rows))
        fail("%s: metadata '%s' is '%s', expected ROWS|NODE", graph_file(g), key, text);
    *by_place = bar[1] ? bar + 1 : NULL;
}
