/* The module path in a node's metadata, as torch's dynamo exporter writes it: a Python list of the modules around the node, outermost
 * first, then the node of the traced graph that it was made from.
 *
 *     pkg.torch.onnx.name_scopes: "['', 'model', 'model.layers.0', 'model.layers.0.mlp', 'mul_1']"
 *
 * The outermost is the network, whose path is empty; a node in no module has a placeholder there. Any other text under this key is
 * ignored. */
#include "onnx/read/read.h"

#include <string.h>

struct item {
    const char *at;
    size_t length;
};

/* Moves past 'ITEM'. Items with quotes or escapes are not paths. */
static bool take_item(const char **at, struct item *out)
{
    if (**at != '\'')
        return false;
    *out = (struct item){*at + 1, strcspn(*at + 1, "'\\")};
    *at = out->at + out->length;
    return *(*at)++ == '\'';
}

/* The innermost module of the list; empty: the network itself, or not such a list. */
static struct item innermost(const char *list)
{
    static const char network[] = MODULES_NETWORK;
    struct item module = {NULL, 0}, last = {NULL, 0};
    if (strncmp(list, network, strlen(network)))
        return module;
    for (const char *at = list + strlen(network); take_item(&at, &last); at += 2) {
        if (strcmp(at, "]") == 0)
            return module;
        if (strncmp(at, ", ", 2))
            break;
        module = last;
    }
    return (struct item){NULL, 0};
}

static const char *metadata(const Onnx__NodeProto *node, const char *key)
{
    for (size_t i = 0; i < node->n_metadata_props; i++)
        if (strcmp(proto_text_or(node->metadata_props[i]->key, ""), key) == 0)
            return proto_text_or(node->metadata_props[i]->value, "");
    return "";
}

void read_module(struct import *im, const Onnx__NodeProto *node, const char *name)
{
    struct item path = innermost(metadata(node, MODULES_KEY));
    if (path.length > 0 && path.length <= MODULE_PATH)
        graph_set_module(im->graph, name, arena_strndup(im->tmp, path.at, path.length));
}
