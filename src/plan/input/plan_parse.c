/* plan_parse: parses the user's plan file (--plan): constraints on nodes, tensors and weights, and the state of a decode loop. Checks only
 * its form; src/plan/constrain/constrain.c applies constraints to a graph, and src/plan/input/state_names.c state. */
#include "plan/input/input.h"

#include <string.h>

/* ---- styles ---------------------------------------------------------------------------------------------------------- */

static const char *const style_names[STYLES] = {
    [STYLE_COLWISE] = "colwise",
    [STYLE_ROWWISE] = "rowwise",
    [STYLE_PAIRWISE] = "pairwise",
    [STYLE_SEQUENCE] = "sequence",
    [STYLE_VOCAB] = "vocab",
    [STYLE_REPLICATE] = "replicate",
    [STYLE_LOSS_PARALLEL] = "loss-parallel",
    [STYLE_PREPARE_INPUT] = "prepare-input",
    [STYLE_PREPARE_OUTPUT] = "prepare-output",
    [STYLE_PREPARE_INPUT_OUTPUT] = "prepare-input-output",
};

const char *plan_style_name(enum style style)
{
    return style_names[style];
}

/* ---- constraints --------------------------------------------------------------------------------------------------------- */

static enum style style_read(const char *where, const json_t *v)
{
    const char *names[STYLES];
    for (int i = 0; i < STYLES; i++)
        names[i] = plan_style_name((enum style)i);
    if (!json_is_string(v))
        fail("%s: expected a string, or an array of them, for 'style', found %s", where, json_kind(v));
    int near = did_you_mean(json_string_value(v), STYLES, names);
    if (strcmp(json_string_value(v), names[near]) != 0)
        fail("%s: unknown style '%s', did you mean '%s'?", where, json_string_value(v), names[near]);
    return (enum style)near;
}

static unsigned styles_read(const char *where, const json_t *v)
{
    unsigned styles = 0;
    if (v && !json_is_array(v))
        return 1u << style_read(where, v);
    for (size_t i = 0; i < json_array_size(v); i++)
        styles |= 1u << style_read(where, json_array_get(v, i));
    return styles;
}

static const char *layout_text(struct arena *a, const char *where, const char *key, const json_t *v)
{
    if (!json_is_string(v) && !json_is_null(v))
        fail("%s: expected a placement or null in '%s', found %s", where, key, json_kind(v));
    return json_is_null(v) ? NULL : arena_strdup(a, json_string_value(v));
}

static struct layout layout_read(struct arena *a, const char *where, const json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key), *item;
    struct layout out = {.key = key};
    size_t n = json_is_array(v) ? json_array_size(v) : json_is_object(v) ? json_object_size(v) : 1, i;
    const char *glob;
    if (!v)
        return out;
    if (!json_is_string(v) && !json_is_array(v) && !json_is_object(v))
        fail("%s: expected a placement, an array or an object of them for '%s', found %s", where, key, json_kind(v));
    out.form = json_is_array(v) ? LAYOUT_ORDER : json_is_object(v) ? LAYOUT_NAMES : LAYOUT_ALL;
    out.glob = NEWN(a, const char *, n + 1);
    out.text = NEWN(a, const char *, n + 1);
    json_object_foreach(v, glob, item)
    {
        out.glob[out.n] = arena_strdup(a, glob);
        out.text[out.n++] = layout_text(a, where, key, item);
    }
    json_array_foreach(v, i, item) out.text[out.n++] = layout_text(a, where, key, item);
    if (out.form == LAYOUT_ALL)
        out.text[out.n++] = layout_text(a, where, key, v);
    require(out.n == (int)n);
    return out;
}

/* Checks what a style requires or forbids at one end of its nodes. */
static void check_state_end(const struct constraint *c, enum style style, const char *end, bool prepares, bool given)
{
    if (prepares && !given)
        fail("%s: expected '%s' or 'desired_%s' for style '%s', found neither", c->where, end, end, plan_style_name(style));
    if (!prepares && given && c->styles == 1u << style)
        fail("%s: style '%s' does not prepare the %s", c->where, plan_style_name(style), end);
}

static void check_state_ends(const struct constraint *c)
{
    bool in = c->input.form || c->desired_input.form, out = c->output.form || c->desired_output.form;
    for (enum style i = STYLE_PREPARE_INPUT; i <= STYLE_PREPARE_INPUT_OUTPUT; i++)
        if (c->styles >> i & 1) {
            check_state_end(c, i, "input", i != STYLE_PREPARE_OUTPUT, in);
            check_state_end(c, i, "output", i != STYLE_PREPARE_INPUT, out);
        }
    if (!c->styles && !c->strategy && !in && !out)
        fail("%s: expected a 'style', 'strategy', 'input' or 'output' for '%s', found none", c->where, c->glob);
}

static int dim_read(const struct constraint *c, const json_t *o)
{
    const json_t *v = json_member(c->where, o, "dim", JSON_INTEGER);
    if (v && !(c->styles >> STYLE_SEQUENCE & 1))
        fail("%s: 'dim' is for style 'sequence'", c->where);
    if (v && (json_integer_value(v) < -MAX_RANK || json_integer_value(v) >= MAX_RANK))
        fail("%s: expected a dimension for 'dim', found %lld", c->where, (long long)json_integer_value(v));
    return v ? (int)json_integer_value(v) : 1;
}

static void read_node_keys(struct arena *a, struct constraint *c, const json_t *o)
{
    static const char *const keys[] = {"match", "style", "strategy", "dim", "input", "desired_input", "output", "desired_output", NULL};
    json_known_keys(c->where, o, keys);
    c->styles = styles_read(c->where, json_object_get(o, "style"));
    c->strategy = json_text(a, c->where, o, "strategy");
    c->dim = dim_read(c, o);
    c->input = layout_read(a, c->where, o, "input");
    c->desired_input = layout_read(a, c->where, o, "desired_input");
    c->output = layout_read(a, c->where, o, "output");
    c->desired_output = layout_read(a, c->where, o, "desired_output");
    check_state_ends(c);
}

static void read_value_keys(struct arena *a, struct constraint *c, const json_t *o, const char *kind)
{
    const char *keys[] = {kind, "placement", NULL};
    json_known_keys(c->where, o, keys);
    c->placement = json_text(a, c->where, o, "placement");
    if (!c->placement)
        fail("%s: expected a 'placement' for '%s', found nothing", c->where, c->glob);
}

static struct constraint *read_constraint(struct arena *a, const char *where, const json_t *o)
{
    static const char *const kinds[] = {[ON_NODES] = "match", [ON_TENSORS] = "tensor", [ON_WEIGHTS] = "weight"};
    struct constraint *c = NEW(a, struct constraint);
    *c = (struct constraint){.where = where};
    if (!json_is_object(o))
        fail("%s: expected an object, found %s", where, json_kind(o));
    for (int k = 0; k < 3; k++) {
        const char *glob = json_text(a, where, o, kinds[k]);
        if (glob && c->glob)
            fail("%s: expected one of 'match', 'tensor' and 'weight', found two", where);
        if (glob) {
            c->on = (enum constraint_on)k;
            c->glob = glob;
        }
    }
    if (!c->glob)
        fail("%s: expected a 'match', 'tensor' or 'weight', found none", where);
    if (c->on == ON_NODES)
        read_node_keys(a, c, o);
    else
        read_value_keys(a, c, o, kinds[c->on]);
    return c;
}

static void read_constraints(struct arena *a, struct plan_file *file, const char *where, const json_t *root)
{
    const json_t *list = json_member(where, root, "constraints", JSON_ARRAY);
    for (size_t i = 0; i < json_array_size(list); i++)
        VEC_PUSH(a, &file->constraints, read_constraint(a, arena_printf(a, "%s: constraints[%zu]", where, i), json_array_get(list, i)));
}

/* ---- state --------------------------------------------------------------------------------------------------------------- */

static const char *second_name(const char *where, const char *first, const json_t *v, bool may_lack)
{
    const char *text = json_is_null(v) && may_lack ? "" : json_string_value(v);
    if (!text)
        fail("%s: expected a string%s for '%s', found %s", where, may_lack ? " or null" : "", first, json_kind(v));
    if (may_lack ? !*first && !*text : !*first || !*text)
        fail("%s: '%s' and '%s' name no state", where, first, text);
    if (*first && glob_stars(text) > glob_stars(first))
        fail("%s: '%s' has more * than '%s', which defines them", where, text, first);
    return text;
}

/* {"glob": "pattern"}; a state may lack an end: null or "". */
static void read_states(struct arena *a, struct plan_file *file, const char *where, const json_t *root, const char *key)
{
    const char *first;
    json_t *v, *names = json_member(where, root, key, JSON_OBJECT);
    bool state = strcmp(key, "state") == 0;
    where = arena_printf(a, "%s: %s", where, key);
    json_object_foreach(names, first, v)
    {
        struct state_names n = {where, arena_strdup(a, first), arena_strdup(a, second_name(where, first, v, state))};
        if (state)
            VEC_PUSH(a, &file->states, n);
        else
            VEC_PUSH(a, &file->state_from, n);
    }
}

void plan_parse_user(struct arena *a, struct plan_file *file, const char *where, const json_t *root)
{
    static const char *const keys[] = {"constraints", "state", "state_from", NULL};
    json_known_keys(where, root, keys);
    read_constraints(a, file, where, root);
    read_states(a, file, where, root, "state");
    read_states(a, file, where, root, "state_from");
    file->text = json_dump(a, root, JSON_COMPACT);
}
