/* userplan: the plan file of --plan as a person writes it: constraints on nodes, tensors and weights, and the state of a decode loop. Only its
 * form is read here; what it means for a graph is src/plan/constrain.c, and src/plan/state.c for state. */
#include "plan/json.h"
#include "plan/plan.h"

#include <string.h>

/* {"past glob": "present glob"}; null or "" for a side that does not exist. */
static void read_states(struct arena *a, struct plan_file *file, const json_t *root)
{
    const char *past;
    json_t *present, *states = json_member(file->path, root, "state", JSON_OBJECT);
    json_object_foreach(states, past, present) {
        const char *text = json_is_null(present) ? "" : json_string_value(present);
        if (!text)
            fail("%s: state: expected a string or null for '%s', found %s", file->path, past, json_kind(present));
        if (!*past && !*text)
            fail("%s: state: an entry names neither a past nor a present", file->path);
        VEC_PUSH(a, &file->states, ((struct state_names){arena_strdup(a, past), arena_strdup(a, text)}));
    }
}

struct plan_file *plan_file_read(struct arena *a, const char *path)
{
    static const char *const keys[] = {"state", NULL};
    struct plan_file *file = NEW(a, struct plan_file);
    json_t *root = json_read(path);
    file->path = path;
    json_known_keys(path, root, keys);
    read_states(a, file, root);
    json_decref(root);
    return file;
}
