/* Multi-device annotations of a file (IR version 11) to the IR: the model's configurations, and the annotations of its main graph's nodes
 * under each. Only their form is checked here: that names exist, and that a node names its own operands and results. */
#include "ir/configuration.h"
#include "onnx/read/read.h"

#include <string.h>

enum { MOST_CONFIGURATIONS = 1000 }; /* per model, far above real ones: search is linear */

static void check_devices(const struct import *im, const Onnx__DeviceConfigurationProto *p, const char *name)
{
    if (!p->has_num_devices || p->num_devices < 1)
        fail("%s: device configuration '%s' has %d devices, expected 1 or more", im->path, name,
             p->has_num_devices ? (int)p->num_devices : 0);
    if (p->n_device && p->n_device != (size_t)p->num_devices)
        fail("%s: device configuration '%s' names %zu devices, expected %d", im->path, name, p->n_device, (int)p->num_devices);
    if (graph_configuration(im->graph, name))
        fail("%s: device configuration '%s' is defined twice", im->path, name);
}

void read_configurations(struct import *im)
{
    if (im->model->n_configuration > MOST_CONFIGURATIONS)
        fail("%s: has %zu device configurations, at most %d are handled", im->path, im->model->n_configuration, MOST_CONFIGURATIONS);
    for (size_t i = 0; i < im->model->n_configuration; i++) {
        const Onnx__DeviceConfigurationProto *p = im->model->configuration[i];
        struct configuration *c = NEW(im->arena, struct configuration);
        if (!p->name || !*p->name)
            fail("%s: device configuration %zu has no name", im->path, i);
        check_devices(im, p, p->name);
        *c = (struct configuration){.name = arena_strdup(im->arena, p->name), .devices = p->num_devices};
        VEC_PUSH(im->arena, &im->graph->configurations, c);
    }
}

/* ---- one spec ---- */

static const int64_t *copy_numbers(struct import *im, size_t n, const int64_t *at)
{
    int64_t *copy = NEWN(im->arena, int64_t, n + 1);
    if (n)
        memcpy(copy, at, n * sizeof *at);
    return copy;
}

static struct shards part_of(struct import *im, const Onnx__SimpleShardedDimProto *p)
{
    bool named = p->dim_case == ONNX__SIMPLE_SHARDED_DIM_PROTO__DIM_DIM_PARAM,
         sized = p->dim_case == ONNX__SIMPLE_SHARDED_DIM_PROTO__DIM_DIM_VALUE;
    return (struct shards){.sized = sized,
                           .size = sized ? p->dim_value : 0,
                           .symbol = named ? arena_strdup(im->arena, p->dim_param) : NULL,
                           .count = p->has_num_shards ? p->num_shards : 0};
}

static struct sharded_axis axis_of(struct import *im, const Onnx__ShardedDimProto *p, const char *where)
{
    struct shards *part = NEWN(im->arena, struct shards, p->n_simple_sharding + 1);
    if (!p->has_axis)
        fail("%s: has a sharded_dim without axis", where);
    for (size_t i = 0; i < p->n_simple_sharding; i++)
        part[i] = part_of(im, p->simple_sharding[i]);
    return (struct sharded_axis){p->axis, (int)p->n_simple_sharding, part};
}

static struct sharding sharding_of(struct import *im, const Onnx__ShardingSpecProto *p, const char *where)
{
    struct device_group *group = NEWN(im->arena, struct device_group, p->n_index_to_device_group_map + 1);
    struct sharded_axis *axis = NEWN(im->arena, struct sharded_axis, p->n_sharded_dim + 1);
    for (size_t i = 0; i < p->n_index_to_device_group_map; i++) {
        const Onnx__IntIntListEntryProto *g = p->index_to_device_group_map[i];
        group[i] = (struct device_group){g->has_key ? g->key : 0, (int)g->n_value, copy_numbers(im, g->n_value, g->value)};
    }
    for (size_t i = 0; i < p->n_sharded_dim; i++)
        axis[i] = axis_of(im, p->sharded_dim[i], where);
    return (struct sharding){.tensor = arena_strdup(im->arena, p->tensor_name),
                             .ndevice = (int)p->n_device,
                             .ngroup = (int)p->n_index_to_device_group_map,
                             .naxis = (int)p->n_sharded_dim,
                             .device = copy_numbers(im, p->n_device, p->device),
                             .group = group,
                             .axis = axis};
}

/* ---- a node's annotations ---- */

/* The annotations of one node: names are looked up in a table because a node may have very many operands. */
struct annotated {
    const Onnx__NodeProto *node;
    const char *name, *where;
    struct text_table *operands, *results;
};

static struct annotated annotated_node(struct import *im, const Onnx__NodeProto *node)
{
    struct annotated n = {.node = node, .where = proto_node_label(im->tmp, node)};
    n.name = proto_node_name(im->arena, proto_text_or(node->name, ""), node->op_type, node->n_output ? node->output[0] : "");
    for (size_t i = 0; i < node->n_input; i++)
        if (!text_table_find(n.operands, node->input[i]))
            text_table_add(im->tmp, &n.operands, node->input[i], node);
    for (size_t i = 0; i < node->n_output; i++)
        if (!text_table_find(n.results, node->output[i]))
            text_table_add(im->tmp, &n.results, node->output[i], node);
    return n;
}

static void import_spec(struct import *im, const struct annotated *n, size_t i, const Onnx__ShardingSpecProto *p, struct text_table **seen,
                        struct configuration *to)
{
    const char *tensor = proto_text_or(p->tensor_name, ""),
               *where = arena_printf(im->tmp, "%s: %s: sharding_spec[%zu]", im->path, n->where, i);
    bool result = text_table_find(n->results, tensor) != NULL;
    if (!*tensor)
        fail("%s: has no tensor_name", where);
    if (!result && !text_table_find(n->operands, tensor))
        fail("%s: is of '%s', expected an operand or result of the node", where, tensor);
    if (text_table_find(*seen, tensor))
        fail("%s: is of '%s', which has one already", where, tensor);
    text_table_add(im->tmp, seen, tensor, p);
    struct sharding s = sharding_of(im, p, where);
    s.node = n->name;
    s.how = result ? SHARDED_MAKES : SHARDED_READS;
    VEC_PUSH(im->arena, &to->shardings, s);
}

static void import_kept(struct import *im, const struct annotated *n, struct text_table **seen, struct configuration *to)
{
    for (size_t i = 0; i < n->node->n_input; i++) {
        const char *tensor = n->node->input[i];
        if (!*tensor || text_table_find(*seen, tensor))
            continue;
        text_table_add(im->tmp, seen, tensor, n->node);
        VEC_PUSH(im->arena, &to->shardings,
                 ((struct sharding){.node = n->name, .tensor = arena_strdup(im->arena, tensor), .how = SHARDED_KEEPS}));
    }
}

static void import_annotation(struct import *im, const struct annotated *n, const Onnx__NodeDeviceConfigurationProto *p,
                              struct text_table **ids)
{
    const char *id = proto_text_or(p->configuration_id, "");
    struct configuration *c = graph_configuration(im->graph, id);
    struct text_table *seen = NULL;
    if (!c)
        fail("%s: %s names device configuration '%s', which the model does not have", im->path, n->where, id);
    if (text_table_find(*ids, id))
        fail("%s: %s names device configuration '%s' twice", im->path, n->where, id);
    text_table_add(im->tmp, ids, id, p);
    for (size_t i = 0; i < p->n_sharding_spec; i++)
        import_spec(im, n, i, p->sharding_spec[i], &seen, c);
    if (p->n_sharding_spec)
        import_kept(im, n, &seen, c);
    if (p->has_pipeline_stage)
        VEC_PUSH(im->arena, &c->stages, ((struct pipeline_stage){n->name, p->pipeline_stage}));
}

void read_shardings(struct import *im, const Onnx__NodeProto *node)
{
    struct text_table *ids = NULL;
    if (!node->n_device_configurations)
        return;
    struct annotated n = annotated_node(im, node);
    for (size_t i = 0; i < node->n_device_configurations; i++)
        import_annotation(im, &n, node->device_configurations[i], &ids);
}
