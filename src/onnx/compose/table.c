/* The tables of composed ops: which function rewrites which op. */
#include "onnx/compose/compose.h"
#include "onnx/onnx.h"

#include <string.h>

static const struct composition *const tables[] = {compose_list_optimizer, compose_list_sequence,  compose_list_flex,
                                                   compose_list_onnx,      compose_list_microsoft, compose_list_integers,
                                                   compose_list_training,  compose_list_ml,        compose_list_linear_attention};

static const struct composition *find_composition(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct composition *row = tables[i]; row->op; row++)
            if (strcmp(proto_domain(node->domain), row->domain) == 0 && strcmp(node->op_type, row->op) == 0)
                return row;
    return NULL;
}

void compose_node(struct import *im, struct name_scope *scope, Onnx__NodeProto *node)
{
    struct composer c = {im, scope, node, find_composition(node), proto_node_label(im->tmp, node)};
    if (c.row)
        c.row->run(&c);
}

/* But for sequences. */
static bool is_itself(const struct composition *row)
{
    size_t n = strlen(row->op);
    return strncmp(row->op, row->of, n) == 0 && (row->of[n] == ',' || !row->of[n]);
}

void onnx_each_composed(void (*take)(void *, const char *domain, const char *op, int since, const char *of), void *data)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct composition *row = tables[i]; row->op; row++)
            if (!is_itself(row))
                take(data, row->domain, row->op, row->since, row->of);
}
