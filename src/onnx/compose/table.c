/* The tables of composed ops: which function rewrites which op. */
#include "onnx/compose/compose.h"
#include "onnx/onnx.h"

#include <string.h>

static const struct composition rows[] = {
#define TEXT(...) TEXT_OF(__VA_ARGS__)
#define TEXT_OF(...) #__VA_ARGS__
#define COMPOSED(domain, op, since, prepare, text) {domain, #op, since, NULL, NULL, prepare, text},
#include "onnx/compose/compositions.def"
    {"", "Mean", 8, "Sum, CastLike, Div", compose_mean, NULL, NULL},
    {"com.microsoft", "QLinearConcat", 1, "DequantizeLinear, Concat, QuantizeLinear", compose_quantized_concat, NULL, NULL},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL},
};
static const struct composition *const tables[] = {compose_list_sequence, rows};
enum { TABLES = sizeof tables / sizeof *tables };

static const struct composition *find_composition(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < TABLES; i++)
        for (const struct composition *row = tables[i]; row->op; row++)
            if (strcmp(proto_domain(node->domain), row->domain) == 0 && strcmp(node->op_type, row->op) == 0)
                return row;
    return NULL;
}

void compose_node(struct import *im, struct name_scope *scope, Onnx__NodeProto *node)
{
    struct composer c = {.im = im, .scope = scope, .node = node, .row = find_composition(node), .where = proto_node_label(im->tmp, node)};
    if (c.row && c.row->run)
        c.row->run(&c);
    else if (c.row && (!c.row->prepare || c.row->prepare(&c)))
        compose_text(&c);
}

void onnx_each_composed(void (*take)(void *, const char *domain, const char *op, int since, const char *of), void *data)
{
    struct arena *a = arena_new();
    for (size_t i = 0; i < TABLES; i++)
        for (const struct composition *row = tables[i]; row->op; row++) {
            const char *of = row->text ? compose_text_ops(a, row) : row->of;
            size_t n = strlen(row->op);
            if (strncmp(row->op, of, n) || (of[n] && of[n] != ',')) /* skip self-references, except for sequences and operand order */
                take(data, row->domain, row->op, row->since, of);
        }
    arena_free(a);
}
