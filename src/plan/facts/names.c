/* names: finds what a user's glob names: by name, by the model file's name, and by the labels in reports. All options share it, so every
 * option accepts every name that an option or report shows. */
#include "plan/facts/facts.h"

#include <string.h>

struct names {
    struct arena *arena;
    const struct graph *g;
    const char **node;               /* by position: label */
    const char **value;              /* by id: label; NULL: no node uses it */
    const char **reader;             /* by id of a weight: label of the node that uses it; NULL: none */
    const char **both;               /* by id: "NAME of LABEL", as in lists of weights; NULL: no node uses it */
    struct name_index nodes, values; /* own names */
};

static const char *origin_of(const struct value *v)
{
    return v->constant ? v->constant->origin : NULL;
}

static void add_value(struct names *n, const struct uses *uses, const struct value *v)
{
    name_index_put(n->arena, &n->values, v->name, v->id);
    if (origin_of(v))
        name_index_put(n->arena, &n->values, origin_of(v), v->id);
    if (!v->constant) {
        n->value[v->id] = v->producer ? label_node(n->arena, n->g, v->producer) : v->name;
    } else if (uses[v->id].n > 0) {
        const struct label_list readers = label_readers(n->arena, n->g, uses, v);
        n->value[v->id] = label_weight(n->arena, n->g, uses, v);
        n->reader[v->id] = readers.list.n ? readers.list.at[0] : NULL;
        n->both[v->id] = label_both(n->arena, n->g, uses, v);
    }
}

struct names *names_new(struct arena *a, const struct graph *g)
{
    const struct uses *uses = graph_uses(g, a);
    struct names *n = NEW(a, struct names);
    *n = (struct names){.arena = a,
                        .g = g,
                        .node = NEWN(a, const char *, g->nodes.n + 1),
                        .value = NEWN(a, const char *, g->values.n + 1),
                        .reader = NEWN(a, const char *, g->values.n + 1),
                        .both = NEWN(a, const char *, g->values.n + 1)};
    for (int i = 0; i < g->nodes.n; i++) {
        name_index_put(a, &n->nodes, g->nodes.at[i]->name, i);
        n->node[i] = label_node(a, g, g->nodes.at[i]);
    }
    for (int i = 0; i < g->values.n; i++)
        add_value(n, uses, g->values.at[i]);
    return n;
}

bool names_node(const struct names *n, int node, const char *glob)
{
    const struct node *at = n->g->nodes.at[node];
    if (name_index_find(&n->nodes, glob) >= 0)
        return strcmp(at->name, glob) == 0;
    return glob_match(glob, at->name) || glob_match_path(glob, n->node[node]);
}

bool names_value(const struct names *n, const struct value *v, const char *glob)
{
    const char *origin = origin_of(v), *label = n->value[v->id], *reader = n->reader[v->id], *both = n->both[v->id];
    if (name_index_find(&n->values, glob) >= 0)
        return strcmp(v->name, glob) == 0 || (origin && strcmp(origin, glob) == 0);
    return glob_match(glob, v->name) || (origin && glob_match(glob, origin)) ||
        (label && (v->producer ? glob_match_path(glob, label) : glob_match(glob, label))) || (reader && glob_match_path(glob, reader)) ||
        (both && glob_match(glob, both));
}

static bool any_case(const char *glob, const char *name)
{
    return name && glob_match_any_case(glob, name);
}

bool names_node_any_case(const struct names *n, int node, const char *glob)
{
    return any_case(glob, n->g->nodes.at[node]->name) || any_case(glob, n->node[node]);
}

bool names_value_any_case(const struct names *n, const struct value *v, const char *glob)
{
    return any_case(glob, v->name) || any_case(glob, origin_of(v)) || any_case(glob, n->value[v->id]) || any_case(glob, n->reader[v->id]) ||
        any_case(glob, n->both[v->id]);
}

/* ---- what is named ------------------------------------------------------------------------------------------------------------ */

static bool is_wanted(const struct name_search *s, const struct value *v)
{
    return (s->kind == NAMED_WEIGHTS) == (v->constant != NULL) && (!s->among || s->among[v->id]);
}

static bool is_named(const struct names *n, const struct name_search *s, int at, const char *glob)
{
    const struct value *weight = s->weight ? s->weight[at] : NULL;
    if (s->kind == NAMED_NODES)
        return (!s->among || s->among[at]) && (names_node(n, at, glob) || (weight && names_value(n, weight, glob)));
    return is_wanted(s, n->g->values.at[at]) && names_value(n, n->g->values.at[at], glob);
}

/* The globs between commas; the whole text if it is a name. */
struct globs {
    VEC(const char *) list;
};

static struct globs split(const struct names *n, const struct name_search *s, const char *text)
{
    struct globs all = {{NULL, 0, 0}};
    bool whole = name_index_find(s->kind == NAMED_NODES ? &n->nodes : &n->values, text) >= 0;
    for (size_t length; *text || !all.list.n; text += length + (text[length] == ',')) {
        length = whole ? strlen(text) : strcspn(text, ",");
        VEC_PUSH(n->arena, &all.list, arena_strndup(n->arena, text, length));
    }
    return all;
}

struct name_matches names_find(const struct names *n, const struct name_search *s, const char *text)
{
    struct globs globs = split(n, s, text);
    struct name_matches found = {.at = {NULL, 0, 0}};
    bool *met = NEWN(n->arena, bool, globs.list.n);
    int count = s->kind == NAMED_NODES ? n->g->nodes.n : n->g->values.n;
    for (int i = 0; i < count; i++) {
        bool named = false;
        for (int k = 0; k < globs.list.n; k++)
            if (is_named(n, s, i, globs.list.at[k]))
                met[k] = named = true;
        if (named)
            VEC_PUSH(n->arena, &found.at, i);
    }
    for (int k = 0; k < globs.list.n; k++)
        if (!met[k] && !s->optional)
            names_refuse(n, s, s->kind, globs.list.at[k]);
    return found;
}

/* ---- what is not ---------------------------------------------------------------------------------------------------------------- */

struct known {
    VEC(const char *) name, pattern; /* names and labels; labels with numbers as *, the first of each */
};

static void add_known(struct arena *a, struct known *all, const char *own, const char *label)
{
    enum { MOST_SHOWN = 4 };
    VEC_PUSH(a, &all->name, own);
    VEC_PUSH(a, &all->name, label);
    const char *pattern = label_pattern(a, label);
    bool is_new = all->pattern.n < MOST_SHOWN;
    for (int i = 0; is_new && i < all->pattern.n; i++)
        is_new = strcmp(all->pattern.at[i], pattern) != 0;
    if (is_new)
        VEC_PUSH(a, &all->pattern, pattern);
}

static struct known known_names(const struct names *n, const struct name_search *s, unsigned kinds)
{
    struct known all = {{NULL, 0, 0}, {NULL, 0, 0}};
    for (int i = 0; i < n->g->nodes.n && kinds & NAMED_NODES; i++)
        if (s->kind != NAMED_NODES || !s->among || s->among[i])
            add_known(n->arena, &all, n->g->nodes.at[i]->name, n->node[i]);
    for (int i = 0; i < n->g->values.n; i++) {
        const struct value *v = n->g->values.at[i];
        bool wanted = (kinds & (unsigned)(v->constant ? NAMED_WEIGHTS : NAMED_TENSORS)) && (!s->among || s->among[v->id]);
        if (wanted && n->value[i])
            add_known(n->arena, &all, v->name, v->constant ? n->value[i] : v->name);
    }
    return all;
}

/* Fails. The nearest name of an incomplete one, such as a module's, is a name that contains it. */
void names_refuse(const struct names *n, const struct name_search *s, unsigned kinds, const char *glob)
{
    struct arena *a = n->arena;
    struct known all = known_names(n, s, kinds);
    int near = did_you_mean(arena_printf(a, "*%s*", glob), all.name.n, all.name.at);
    const char *others = "", *before = "; others are ";
    for (int i = 0; near >= 0 && i < all.pattern.n; i++) {
        if (strcmp(all.pattern.at[i], all.name.at[near]) == 0)
            continue;
        others = arena_printf(a, "%s%s'%s'", others, before, all.pattern.at[i]);
        before = ", ";
    }
    fail("%s: no %s is named like '%s'%s%s%s%s", s->where, s->what, glob, near < 0 ? ", and there is none" : "; the nearest is '",
         near < 0 ? "" : all.name.at[near], near < 0 ? "" : "'", others);
}
