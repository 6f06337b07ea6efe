/* branch: the operands and results of bodies, and the branch that an If with a known condition takes. */
#include "op/control/control.h"
#include "op/infer/infer.h"
#include "op/op.h"

/* Operands before the captures; a text form may have any number. */
void control_check_operands(const struct graph *g, const struct node *node, int least)
{
    int n = node_captured(node, 0);
    if (n < least || (op_is_onnx(node, "If") && n > 1))
        fail("%s: has %d operands in addition to the ones that its bodies capture, expected %d", node_where(g, node), n, least);
}

void control_check_inputs(const struct graph *g, const struct node *node, int body, int expected)
{
    const struct graph *b = node_body(node, body)->graph;
    int n = b->inputs.n - b->captures;
    if (n != expected)
        fail("%s: its %s has %d inputs, expected %d", node_where(g, node), node_body(node, body)->name, n, expected);
}

void control_check_outputs(const struct graph *g, const struct node *node, int body, int least)
{
    const struct graph *b = node_body(node, body)->graph;
    if (b->outputs.n < least)
        fail("%s: its %s has %d outputs, expected %d", node_where(g, node), node_body(node, body)->name, b->outputs.n, least);
}

static bool known_condition(struct graph *g, struct value *v, int64_t *out)
{
    double number;
    const struct dims_value *dims = op_entries(g, v);
    if (dims)
        return dims->n == 1 && dim_is_int(dims->at[0], out);
    *out = op_constant_number(v, &number) && number != 0;
    return v && v->constant && constant_present(v->constant) && constant_elements(v->constant) == 1;
}

bool control_take_branch(struct graph *g, struct node *node, struct nodes *out)
{
    if (!op_is_onnx(node, "If"))
        return false;
    int64_t k;
    if (!known_condition(g, node->in[0], &k))
        return false;
    int branch = k ? 0 : 1;
    control_check_operands(g, node, 1);
    control_check_inputs(g, node, branch, 0);
    control_check_outputs(g, node, branch, node->nout);
    graph_unfold(g, node, branch, out);
    return true;
}
