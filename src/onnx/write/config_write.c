/* A model with a multi-device configuration: the file's bytes, in which nodes of the main graph get the plan's shardings of their operands
 * and results.
 *
 * All else is copied, payloads and external data too. An earlier configuration of the same name is left out, so annotating is idempotent;
 * other configurations stay. */
#include "ir/configuration.h"
#include "onnx/write/write.h"

#include <string.h>

enum { ANNOTATED_IR = 11 }; /* the first IR version that knows annotations */

struct annotator {
    struct arena *arena, *tmp;
    struct map file;
    const char *path;
    const struct annotation *what;
    const int *stage; /* by node of the main graph: its pipeline stage, -1: none; NULL: there are no stages */
};

/* ---- a spec as a message ---- */

static Onnx__SimpleShardedDimProto *part_message(struct arena *a, const struct shards *part)
{
    Onnx__SimpleShardedDimProto *m = NEW(a, Onnx__SimpleShardedDimProto);
    onnx__simple_sharded_dim_proto__init(m);
    if (part->symbol) {
        m->dim_case = ONNX__SIMPLE_SHARDED_DIM_PROTO__DIM_DIM_PARAM;
        m->dim_param = arena_strdup(a, part->symbol);
    } else if (part->sized) {
        m->dim_case = ONNX__SIMPLE_SHARDED_DIM_PROTO__DIM_DIM_VALUE;
        m->dim_value = part->size;
    }
    m->has_num_shards = 1;
    m->num_shards = part->count;
    return m;
}

static Onnx__ShardedDimProto *axis_message(struct arena *a, const struct sharded_axis *axis)
{
    Onnx__ShardedDimProto *m = NEW(a, Onnx__ShardedDimProto);
    onnx__sharded_dim_proto__init(m);
    m->has_axis = 1;
    m->axis = axis->axis;
    m->n_simple_sharding = (size_t)axis->n;
    m->simple_sharding = NEWN(a, Onnx__SimpleShardedDimProto *, axis->n + 1);
    for (int i = 0; i < axis->n; i++)
        m->simple_sharding[i] = part_message(a, &axis->part[i]);
    return m;
}

static int64_t *clone_numbers(struct arena *a, int n, const int64_t *at)
{
    int64_t *copy = NEWN(a, int64_t, n + 1);
    if (n)
        memcpy(copy, at, (size_t)n * sizeof *at);
    return copy;
}

static Onnx__IntIntListEntryProto *group_message(struct arena *a, const struct device_group *group)
{
    Onnx__IntIntListEntryProto *m = NEW(a, Onnx__IntIntListEntryProto);
    onnx__int_int_list_entry_proto__init(m);
    m->has_key = 1;
    m->key = group->key;
    m->n_value = (size_t)group->n;
    m->value = clone_numbers(a, group->n, group->device);
    return m;
}

static Onnx__ShardingSpecProto *spec_message(struct arena *a, const struct sharding *s, const char *tensor)
{
    Onnx__ShardingSpecProto *m = NEW(a, Onnx__ShardingSpecProto);
    onnx__sharding_spec_proto__init(m);
    m->tensor_name = arena_strdup(a, tensor);
    m->n_device = (size_t)s->ndevice;
    m->device = clone_numbers(a, s->ndevice, s->device);
    m->n_index_to_device_group_map = (size_t)s->ngroup;
    m->index_to_device_group_map = NEWN(a, Onnx__IntIntListEntryProto *, s->ngroup + 1);
    for (int i = 0; i < s->ngroup; i++)
        m->index_to_device_group_map[i] = group_message(a, &s->group[i]);
    m->n_sharded_dim = (size_t)s->naxis;
    m->sharded_dim = NEWN(a, Onnx__ShardedDimProto *, s->naxis + 1);
    for (int i = 0; i < s->naxis; i++)
        m->sharded_dim[i] = axis_message(a, &s->axis[i]);
    return m;
}

/* ---- a node ---- */

struct texts {
    VEC(char *) list;
};
struct node_texts {
    char *name, *op_type;
    struct texts in, out;
};

static char *field_text(const struct annotator *w, const struct wire_field *f)
{
    return arena_strndup(w->tmp, (const char *)w->file.at + f->begin, (size_t)(f->end - f->begin));
}

static struct node_texts node_texts_of(const struct annotator *w, const struct wire_field *node)
{
    struct node_texts t = {.name = arena_strdup(w->tmp, ""), .op_type = arena_strdup(w->tmp, "")};
    for (int64_t at = node->begin; at < node->end;) {
        struct wire_field f = wire_next(w->file, &at, node->end);
        switch (f.number) {
        case NODE_INPUT: VEC_PUSH(w->tmp, &t.in.list, field_text(w, &f)); break;
        case NODE_OUTPUT: VEC_PUSH(w->tmp, &t.out.list, field_text(w, &f)); break;
        case NODE_NAME: t.name = field_text(w, &f); break;
        case NODE_OP_TYPE: t.op_type = field_text(w, &f); break;
        default: break;
        }
    }
    t.name = proto_node_name(w->tmp, t.name, t.op_type, t.out.list.n ? t.out.list.at[0] : "");
    return t;
}

/* stage: of the node. */
static bool is_elsewhere(const struct annotator *w, const char *node, const char *result, int stage)
{
    return w->what->stage && w->what->stage(w->what->data, node, result) != stage;
}

static void add_specs(const struct annotator *w, const char *node, const struct texts *t, bool result,
                      Onnx__NodeDeviceConfigurationProto *to)
{
    int stage = to->has_pipeline_stage ? to->pipeline_stage : -1;
    struct text_table *seen = NULL;
    for (int i = 0; i < t->list.n; i++) {
        const char *tensor = t->list.at[i];
        struct sharding s;
        if (!*tensor || text_table_find(seen, tensor) || is_elsewhere(w, node, result ? tensor : "", stage))
            continue;
        text_table_add(w->tmp, &seen, tensor, w);
        if (w->what->find(w->what->data, w->tmp, node, tensor, result, &s))
            to->sharding_spec[to->n_sharding_spec++] = spec_message(w->tmp, &s, tensor);
    }
}

/* number: of the node in the main graph. */
static void put_annotation(const struct annotator *w, struct segments *body, const struct wire_field *node, int number)
{
    Onnx__NodeDeviceConfigurationProto m = ONNX__NODE_DEVICE_CONFIGURATION_PROTO__INIT;
    struct node_texts t = node_texts_of(w, node);
    m.configuration_id = arena_strdup(w->tmp, w->what->name);
    m.has_pipeline_stage = w->stage && w->stage[number] >= 0;
    m.pipeline_stage = m.has_pipeline_stage ? w->stage[number] : 0;
    m.sharding_spec = NEWN(w->tmp, Onnx__ShardingSpecProto *, t.in.list.n + t.out.list.n + 1);
    add_specs(w, t.name, &t.in, false, &m);
    add_specs(w, t.name, &t.out, true, &m);
    if (m.n_sharding_spec || m.has_pipeline_stage)
        segments_add_message(body, NODE_DEVICE_CONFIGURATIONS, &m.base);
}

static void *unpack(const struct annotator *w, const struct wire_field *f, const ProtobufCMessageDescriptor *message)
{
    return wire_unpack(w->tmp, w->path, MODEL_FILE, (struct map){w->file.at + f->begin, (size_t)(f->end - f->begin)}, message);
}

static bool is_old_annotation(const struct annotator *w, const struct wire_field *f)
{
    if (f->number != NODE_DEVICE_CONFIGURATIONS)
        return false;
    const Onnx__NodeDeviceConfigurationProto *m = unpack(w, f, &onnx__node_device_configuration_proto__descriptor);
    return strcmp(proto_text_or(m->configuration_id, ""), w->what->name) == 0;
}

static void put_node(const struct annotator *w, struct segments *graph, const struct wire_field *node, int number)
{
    struct segments body = segments_new(w->arena, w->file.at);
    for (int64_t at = node->begin; at < node->end;) {
        struct wire_field f = wire_next(w->file, &at, node->end);
        if (!is_old_annotation(w, &f))
            segments_copy(&body, f.tag, f.end);
    }
    put_annotation(w, &body, node, number);
    arena_reset(w->tmp);
    segments_add_head(graph, GRAPH_NODE, body.total);
    segments_append(graph, &body);
}

/* ---- stages ---- */

struct node_list {
    VEC(struct node_texts) list;
};

static struct node_list nodes_of_graph(const struct annotator *w, const struct wire_field *graph)
{
    struct node_list all = {{NULL, 0, 0}};
    for (int64_t at = graph->begin; at < graph->end;) {
        struct wire_field f = wire_next(w->file, &at, graph->end);
        if (f.number == GRAPH_NODE)
            VEC_PUSH(w->tmp, &all.list, node_texts_of(w, &f));
    }
    return all;
}

static int chosen_stage(const struct annotator *w, const struct node_texts *n)
{
    int stage = -1;
    for (int i = 0; i < n->out.list.n && stage < 0; i++)
        stage = w->what->stage(w->what->data, n->name, n->out.list.at[i]);
    return stage;
}

/* A node that planning folded away is in the earliest stage of those that read its results. */
static const int *stages_of_nodes(const struct annotator *w, const struct wire_field *graph)
{
    const struct node_list all = nodes_of_graph(w, graph);
    struct name_index made = {0};
    int *stage = NEWN(w->arena, int, all.list.n + 1);
    bool *chosen = NEWN(w->tmp, bool, all.list.n + 1);
    for (int i = 0; i < all.list.n; i++) {
        stage[i] = chosen_stage(w, &all.list.at[i]);
        chosen[i] = stage[i] >= 0;
        for (int k = 0; k < all.list.at[i].out.list.n; k++)
            if (*all.list.at[i].out.list.at[k])
                name_index_put(w->tmp, &made, all.list.at[i].out.list.at[k], i);
    }
    for (int i = all.list.n - 1; i >= 0; i--)
        for (int k = 0; k < all.list.at[i].in.list.n; k++) {
            int from = name_index_find(&made, all.list.at[i].in.list.at[k]);
            if (from >= 0 && !chosen[from] && stage[i] >= 0 && (stage[from] < 0 || stage[i] < stage[from]))
                stage[from] = stage[i];
        }
    arena_reset(w->tmp);
    return stage;
}

/* ---- the model ---- */

static struct segments graph_pieces(struct annotator *w, const struct wire_field *graph)
{
    struct segments body = segments_new(w->arena, w->file.at);
    int number = 0;
    w->stage = w->what->stage ? stages_of_nodes(w, graph) : NULL;
    for (int64_t at = graph->begin; at < graph->end;) {
        struct wire_field f = wire_next(w->file, &at, graph->end);
        if (f.number == GRAPH_NODE)
            put_node(w, &body, &f, number++);
        else
            segments_copy(&body, f.tag, f.end);
    }
    return body;
}

static bool is_old_configuration(const struct annotator *w, const struct wire_field *f)
{
    const Onnx__DeviceConfigurationProto *m = unpack(w, f, &onnx__device_configuration_proto__descriptor);
    return strcmp(proto_text_or(m->name, ""), w->what->name) == 0;
}

/* The IR version and the configuration, as a model with nothing else. */
static void put_head(const struct annotator *w, struct segments *model, int64_t ir_version)
{
    Onnx__ModelProto m = ONNX__MODEL_PROTO__INIT;
    Onnx__DeviceConfigurationProto c = ONNX__DEVICE_CONFIGURATION_PROTO__INIT, *list = &c;
    c.name = arena_strdup(w->arena, w->what->name);
    c.has_num_devices = 1;
    c.num_devices = w->what->devices;
    m.has_ir_version = 1;
    m.ir_version = ir_version > ANNOTATED_IR ? ir_version : ANNOTATED_IR;
    m.n_configuration = 1;
    m.configuration = &list;
    uint8_t *packed = arena_alloc(w->arena, onnx__model_proto__get_packed_size(&m));
    segments_add(model, (struct segment){.at = packed, .bytes = (int64_t)onnx__model_proto__pack(&m, packed)});
}

static struct segments model_pieces(struct annotator *w)
{
    struct segments model = segments_new(w->arena, w->file.at), graph = model;
    put_head(w, &model, w->what->ir_version);
    for (int64_t at = 0; at < (int64_t)w->file.bytes;) {
        struct wire_field f = wire_next(w->file, &at, (int64_t)w->file.bytes);
        if (f.number == MODEL_GRAPH) {
            graph = graph_pieces(w, &f);
            segments_add_head(&model, MODEL_GRAPH, graph.total);
            segments_append(&model, &graph);
        } else if (f.number != MODEL_IR_VERSION && !(f.number == MODEL_CONFIGURATION && is_old_configuration(w, &f)))
            segments_copy(&model, f.tag, f.end);
    }
    return model;
}

/* ---- the file ---- */

/* Paths of external data are relative to the model's folder. */
static void check_place(const struct annotator *w, const struct wire_index *index, const char *to)
{
    const char *from = path_real(w->tmp, path_dir(w->tmp, w->path)), *into = path_real(w->tmp, path_dir(w->tmp, to));
    if (into && from && strcmp(from, into) == 0)
        return;
    for (int i = 0; i < index->tensors.n; i++)
        if (wire_is_external(w->file, &index->tensors.at[i]))
            fail("%s: has weights in other files of its folder, expected the annotated model in the same folder, found %s", w->path, to);
}

void onnx_annotate(const char *path, const char *to, const struct annotation *what)
{
    struct annotator w = {arena_new(), arena_new(), map_file(path), path, what, NULL};
    struct wire_index index = {.stripped = false};
    struct out out;
    wire_check(w.arena, path, MODEL_FILE, w.file, &onnx__model_proto__descriptor, &index);
    check_place(&w, &index, to);
    struct segments model = model_pieces(&w);
    out_open_whole(w.arena, &out, to);
    segments_write(&model, to, out_put, &out);
    out_close(&out);
    map_close(w.file);
    arena_free(w.tmp);
    arena_free(w.arena);
}
