/* rule_case: rules whose text is in schemas/ops.def: chooses the case for a node. */
#include "op/op.h"
#include "op/rule/rule_condition.h"
#include "op/table/table.h"

#include <string.h>

uint32_t over_all(struct graph *g, const struct node *node)
{
    (void)g;
    (void)node;
    return UINT32_MAX;
}

uint32_t over_last(struct graph *g, const struct node *node)
{
    (void)g;
    return UINT32_C(1) << (node->in[0]->type.rank - 1);
}

uint32_t over_last_two(struct graph *g, const struct node *node)
{
    (void)g;
    return UINT32_C(3) << (node->in[0]->type.rank - 2);
}

/* Replaces "{num_groups}" by the value of that attribute. */
static const char *with_numbers(struct arena *a, const struct node *node, const char *text)
{
    const char *open = strchr(text, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close)
        return text;
    const char *name = arena_strndup(a, open + 1, (size_t)(close - open - 1));
    return arena_printf(a, "%.*s%lld%s", (int)(open - text), text, (long long)attr_int(node, name), with_numbers(a, node, close + 1));
}

struct rule *rule_by_text(struct graph *g, const struct node *node)
{
    uint32_t set = node->op->over ? node->op->over(g, node) : 0;
    for (const char *at = node->op->rule_text; *at; at += strspn(at, "; ")) {
        size_t n = strcspn(at, ";");
        const char *colon = strstr(at, ": ");
        bool conditional = strncmp(at, "if ", 3) == 0;
        if (!conditional || rule_conditions_hold(g, node, set, at + 3, (size_t)(colon - at) - 3)) {
            const char *from = conditional ? colon + 2 : at;
            return rule_template(g, node, set, with_numbers(g->arena, node, arena_strndup(g->arena, from, n - (size_t)(from - at))));
        }
        at += n;
    }
    return NULL;
}
