/* The tables of composed ops: which function rewrites which op. */
#include "onnx/read/read.h"

#include <string.h>

static void (*find_composition(const struct composition *table, const Onnx__NodeProto *node))(struct composer *)
{
    for (; table->op; table++)
        if (!strcmp(proto_domain(node->domain), table->domain) && !strcmp(node->op_type, table->op))
            return table->run;
    return NULL;
}

void compose_node(struct import *im, struct scope *scope, Onnx__NodeProto *node)
{
    static const struct composition *const tables[] = {composed_onnx, composed_microsoft, composed_integers};
    struct composer c = {im, scope, node, proto_node_label(im->tmp, node)};
    void (*run)(struct composer *) = NULL;
    for (size_t i = 0; !run && i < sizeof tables / sizeof *tables; i++)
        run = find_composition(tables[i], node);
    if (run)
        run(&c);
}
