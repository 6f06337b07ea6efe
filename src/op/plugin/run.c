/* run: a node of a plug-in's op: its kernel on tensors, and its rule. */
#include "kern/kern.h"
#include "op/plugin/plugin.h"
#include "op/rule/rule.h"

static void lend(const struct kcall *call, const struct tensor *from, tpc_plugin_tensor *to)
{
    if (from->packed || from->room)
        bug("%s: a plug-in sees dense tensors", node_where(call->graph, call->node));
    *to = (tpc_plugin_tensor){.type = (int32_t)from->dtype, .rank = from->rank, .dim = from->dim, .data = from->data};
}

void plugin_kernel(struct kcall *call)
{
    const struct plugin_op *p = plugin_op_of(call->node);
    tpc_plugin_tensor in[PLUGIN_OPERANDS], out[PLUGIN_RESULTS];
    tpc_plugin_value attr[PLUGIN_ATTRIBUTES + 1];
    for (int i = 0; i < p->signature.nin; i++)
        lend(call, &call->in[i], &in[i]);
    for (int i = 0; i < p->signature.nout; i++)
        lend(call, &call->out[i], &out[i]);
    for (int i = 0; i < call->node->nattr; i++)
        attr[i] = (tpc_plugin_value){.i = call->node->attr[i].i, .f = call->node->attr[i].f, .s = call->node->attr[i].s};
    const tpc_plugin_call given = {.in = in, .out = out, .attr = attr, .threads = call->env ? kenv_threads(call->env) : 1};
    const char *why = p->given.kernel(&given);
    if (why)
        fail("%s: the plug-in '%s' failed: %.300s", node_where(call->graph, call->node), p->op.plugin, why);
}

struct rule *plugin_rule(struct graph *g, const struct node *node)
{
    return rule_parse(g, node, plugin_op_of(node)->given.rule);
}
