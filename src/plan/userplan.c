/* userplan: the plan file of --plan as a person writes it: constraints on nodes, tensors and weights, and the state of a decode loop. Only its
 * form is read here; what it means for a graph is src/plan/constrain.c, and src/plan/statenames.c for state. */
#include "plan/json.h"

#include <string.h>

/* ---- constraints --------------------------------------------------------------------------------------------------------- */

static const char *const styles[] = {"colwise", "rowwise", "replicate"};
static const char *const later[] = {"pairwise", "sequence", "vocab", "prepare-input", "prepare-output", "prepare-input-output", "loss-parallel"};
enum { STYLES = sizeof styles / sizeof *styles, LATER = sizeof later / sizeof *later };

static void check_style(const char *where, const char *style)
{
    for (int i = 0; i < STYLES; i++)
        if (strcmp(style, styles[i]) == 0)
            return;
    for (int i = 0; i < LATER; i++)
        if (strcmp(style, later[i]) == 0)
            fail("%s: style '%s' is not supported yet, expected colwise, rowwise or replicate", where, style);
    fail("%s: unknown style '%s', did you mean '%s'?", where, style, styles[nearest_text(style, STYLES, styles)]);
}

static void read_node_keys(struct arena *a, struct constraint *c, const json_t *o)
{
    static const char *const keys[] = {"match", "style", "strategy", "input", "output", NULL};
    c->style = json_text(a, c->where, o, "style");
    if (c->style)
        check_style(c->where, c->style);
    json_known_keys(c->where, o, keys);
    c->strategy = json_text(a, c->where, o, "strategy");
    c->input = json_text(a, c->where, o, "input");
    c->output = json_text(a, c->where, o, "output");
    if (!c->style && !c->strategy && !c->input && !c->output)
        fail("%s: expected a 'style', 'strategy', 'input' or 'output' for '%s', found none", c->where, c->glob);
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
        fail("%s: '%s' has more * than '%s', which tells what they stand for", where, text, first);
    return text;
}

/* {"glob": "pattern"}; state may lack an end: null or "". */
static void read_states(struct arena *a, struct plan_file *file, const char *where, const json_t *root, const char *key)
{
    const char *first;
    json_t *v, *names = json_member(where, root, key, JSON_OBJECT);
    bool state = strcmp(key, "state") == 0;
    where = arena_printf(a, "%s: %s", where, key);
    json_object_foreach(names, first, v) {
        struct state_names n = {where, arena_strdup(a, first), arena_strdup(a, second_name(where, first, v, state))};
        if (state)
            VEC_PUSH(a, &file->states, n);
        else
            VEC_PUSH(a, &file->state_from, n);
    }
}

void user_plan_read(struct arena *a, struct plan_file *file, const char *where, const json_t *root)
{
    static const char *const keys[] = {"constraints", "state", "state_from", NULL};
    json_known_keys(where, root, keys);
    read_constraints(a, file, where, root);
    read_states(a, file, where, root, "state");
    read_states(a, file, where, root, "state_from");
    file->text = json_dump(a, root, JSON_COMPACT);
}

struct plan_file *plan_file_read(struct arena *a, const char *path)
{
    struct plan_file *file = NEW(a, struct plan_file);
    json_t *root = json_read(path);
    file->path = path;
    if (json_object_get(root, "version"))
        file->emitted = emitted_plan_read(a, file, root);
    else
        user_plan_read(a, file, path, root);
    json_decref(root);
    return file;
}
