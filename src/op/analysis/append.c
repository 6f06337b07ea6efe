/* append: ops whose result is an operand with appended rows, so that both can share memory. */
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <string.h>

static const char *behind(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

int op_past_operand(const struct node *node, int result)
{
    const char *what = result < node->op->nout ? behind(node->op->out[result].name, "present_") : NULL;
    for (int i = 0; what && i < node->nin && i < node->op->nin; i++) {
        const char *past = behind(node->op->in[i].name, "past_");
        if (past && strcmp(past, what) == 0)
            return i;
    }
    return -1;
}

int op_appends_to(const struct node *node, int result, int *axis)
{
    if (!node->op || !(node->op->flags & OP_APPENDS) || !node->out[result])
        return -1;
    bool concat = strcmp(node->op->name, "Concat") == 0;
    int operand = concat ? 0 : op_past_operand(node, result), rank = node->out[result]->type.rank;
    *axis = concat ? (int)attr_int(node, "axis") : -2;
    *axis += *axis < 0 ? rank : 0;
    return operand >= 0 && node->in[operand] ? operand : -1;
}

/* Skips moves of all elements, which an exporter puts around an op that needs another order. */
static const struct value *behind_moves(const struct value *v)
{
    while (v->producer && (op_is_onnx(v->producer, "Transpose") || op_is_onnx(v->producer, "Identity")))
        v = v->producer->in[0];
    return v;
}

const struct value *op_recurrent_past(const struct value *present)
{
    const struct value *made = behind_moves(present);
    const struct node *node = made->producer;
    int operand = node && node->op && !(node->op->flags & OP_APPENDS) ? op_past_operand(node, made->index) : -1;
    if (operand < 0 || !node->in[operand])
        return NULL;
    const struct value *past = behind_moves(node->in[operand]);
    return past->producer || past->constant ? NULL : past;
}
