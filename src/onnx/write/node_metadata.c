/* node_metadata: a node's metadata in a file: placements of its operands and results, its module, and attributes that the op's row keeps
 * there. */
#include "ir/rank_meta.h"
#include "onnx/write/write.h"

#include <inttypes.h>

/* For values that the plan has. */
static const char *add_placements(struct arena *tmp, const char *text, int n, struct value *const *at, int planned)
{
    for (int i = 0; i < n; i++) {
        if (!at[i] || at[i]->id >= planned)
            continue;
        struct placement p = at[i]->place;
        text = arena_printf(tmp, "%s%s%s", text, *text ? " " : "",
                            p.kind == PLACE_S ? arena_printf(tmp, "S(%d)", p.dim) : placement_str(tmp, p));
    }
    return text;
}

/* "R S(1)->S(2)"; NULL: the node is not in the plan, whose values have numbers below `planned`. A node with many operands lists only its
 * results. */
static const char *placements_text(struct arena *tmp, const struct node *node, int planned)
{
    enum { MOST_OPERANDS = 16 };
    bool known = planned > 0 && node->nout > 0 && node->nout <= MOST_OPERANDS;
    for (int i = 0; known && i < node->nout; i++)
        known = !node->out[i] || node->out[i]->id < planned;
    if (!known)
        return NULL;
    const char *text = add_placements(tmp, "", node->nin <= MOST_OPERANDS ? node->nin : 0, node->in, planned);
    return add_placements(tmp, arena_printf(tmp, "%s%s->", text, *text ? " " : ""), node->nout, node->out, planned);
}

static void put(struct arena *tmp, struct node_metadata *to, const char *key, const char *text)
{
    if (text)
        VEC_PUSH(tmp, &to->list, ((struct meta){key, text}));
}

struct node_metadata node_metadata_of(struct arena *tmp, const struct graph *g, const struct node *node, int planned)
{
    struct node_metadata out = {{0}};
    const char *module = node_module(g, node);
    put(tmp, &out, RANK_META_PLACEMENT, placements_text(tmp, node, planned));
    for (int i = 0; node->op && i < node->nattr; i++) {
        const struct attr *a = &node->attr[i];
        if (node->op->attr[i].noted && a->set)
            put(tmp, &out, arena_printf(tmp, RANK_META_NOTE "%s", a->name),
                a->kind == ATTR_INT ? arena_printf(tmp, "%" PRId64, a->i) : a->s);
    }
    put(tmp, &out, MODULES_KEY, module ? arena_printf(tmp, MODULES_NETWORK "'%s', '']", module) : NULL);
    return out;
}
