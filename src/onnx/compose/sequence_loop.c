/* A Loop that appends to a sequence: the state is removed, and the appended values become a scan output. */
#include "onnx/compose/compose.h"

#include <string.h>

typedef Onnx__NodeProto proto;

static Onnx__GraphProto *body_of(const proto *loop)
{
    const Onnx__AttributeProto *a = proto_attribute(loop, "body");
    return a ? a->g : NULL;
}

static bool reads(const proto *node, const char *name)
{
    return NAMED_AT(node->input, node->n_input, name) >= 0;
}

/* Nodes with bodies of their own may read any name. */
static bool has_body(const proto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g)
            return true;
    return false;
}

/* The node that makes the value, if the value and the state have no other reader. */
static proto *only_append(const Onnx__GraphProto *body, const char *state, const char *made)
{
    proto *found = NULL;
    for (size_t i = 0; i < body->n_node; i++) {
        proto *node = body->node[i];
        bool makes = node->n_output == 1 && strcmp(node->output[0], made) == 0;
        bool appends = makes && strcmp(proto_text_or(node->op_type, ""), "SequenceInsert") == 0 && node->n_input == 2;
        if (has_body(node) || reads(node, made) || (reads(node, state) && !appends))
            return NULL;
        found = appends && strcmp(node->input[0], state) == 0 ? node : found;
    }
    return found;
}

bool sequence_is_appended(const proto *loop, size_t state, char **element)
{
    const Onnx__GraphProto *body = body_of(loop);
    if (!body || body->n_input < state + 3 || body->n_output < state + 2)
        return false;
    const proto *append = only_append(body, proto_text_or(body->input[state + 2]->name, ""),
                                      proto_text_or(body->output[state + 1]->name, ""));
    if (append)
        *element = append->input[1];
    return append != NULL;
}

/* A list without entry `at`, or with one more at its end. */
static void **edited_list(struct import *im, size_t *n, void *const *list, size_t at, void *more)
{
    void **out = NEWN(im->tmp, void *, *n + 2);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (i != at)
            out[kept++] = list[i];
    if (more)
        out[kept++] = more;
    *n = kept;
    return out;
}

static Onnx__ValueInfoProto *scan_output(struct import *im, const char *element)
{
    Onnx__ValueInfoProto *info = NEW(im->tmp, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(info);
    info->name = arena_strdup(im->tmp, element);
    return info;
}

static Onnx__GraphProto *edited_body(struct import *im, const Onnx__GraphProto *from, size_t state, const char *element)
{
    Onnx__GraphProto *body = NEW(im->tmp, Onnx__GraphProto);
    *body = *from;
    const proto *append = only_append(from, proto_text_or(from->input[state + 2]->name, ""),
                                      proto_text_or(from->output[state + 1]->name, ""));
    size_t at = 0;
    while (from->node[at] != append)
        at++;
    body->node = (proto **)edited_list(im, &body->n_node, (void *const *)from->node, at, NULL);
    body->input = (Onnx__ValueInfoProto **)edited_list(im, &body->n_input, (void *const *)from->input, state + 2, NULL);
    body->output = (Onnx__ValueInfoProto **)edited_list(im, &body->n_output, (void *const *)from->output, state + 1,
                                                        scan_output(im, element));
    return body;
}

void sequence_to_scan(struct composer *c, size_t state, const char *element, char *stack)
{
    struct import *im = c->im;
    proto *node = c->node;
    Onnx__AttributeProto *body = NEW(im->tmp, Onnx__AttributeProto);
    *body = *proto_attribute(node, "body");
    body->g = edited_body(im, body->g, state, element);
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(proto_text_or(node->attribute[i]->name, ""), "body") == 0)
            node->attribute[i] = body;
    node->input = (char **)edited_list(im, &node->n_input, (void *const *)node->input, state + 2, NULL);
    size_t given = node->n_output;
    node->output = (char **)edited_list(im, &node->n_output, (void *const *)node->output, state, NULL);
    /* Scan outputs that the file leaves out come before the new one. */
    while (node->n_output + 2 < body->g->n_output)
        node->output = (char **)edited_list(im, &node->n_output, (void *const *)node->output, given + 1, arena_strdup(im->tmp, ""));
    node->output = (char **)edited_list(im, &node->n_output, (void *const *)node->output, given + 1, stack);
}
