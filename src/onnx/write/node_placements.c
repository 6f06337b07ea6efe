/* node_placements: the placements of a node's operands and results, as its metadata tell them to viewers. */
#include "onnx/write/write.h"

/* Of values that the plan knows. */
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

const char *node_placements_text(struct arena *tmp, const struct node *node, int planned)
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
