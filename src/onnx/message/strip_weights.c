/* Weight-stripped models: placeholders replace the big payloads of a model file. protobuf-c unpacks this form (weights stay in the file,
 * to be mapped), and a folder keeps it as model.onnx.
 *
 * A payload is the raw_data, of WEIGHT_BYTES or more, of an initializer of the main graph. Its placeholder ends the tensor's message and
 * makes it a tensor with external data: entries PLACEHOLDER_KEY (where in the message raw_data began), location, offset and length (of
 * the payload in the model file), then data_location. All else is copied, so that restoring the payloads gives the same file, byte for
 * byte. That needs shortest-form lengths around the payload; a payload without them stays. */
#include "onnx/message/message.h"

#include <string.h>

/* ---- a model's segments: initializers that change, and all else ---- */

typedef bool payload_filter(const struct wire_index *, const struct wire_initializer *);
typedef void payload_rewrite(void *, struct segments *body, const struct wire_initializer *);

static struct segments rewritten(struct arena *arena, struct map file, const struct wire_index *index, payload_filter *changes,
                                 payload_rewrite *change, void *data)
{
    struct segments graph = segments_new(arena, file.at), model = graph;
    int64_t at = index->graph.begin;
    EACH (const struct wire_initializer, item, index->initializers) {
        if (!changes(index, item))
            continue;
        struct segments body = segments_new(arena, file.at);
        change(data, &body, item);
        segments_copy(&graph, at, item->message.tag);
        segments_add_head(&graph, GRAPH_INITIALIZER, body.total);
        segments_append(&graph, &body);
        at = item->message.end;
    }
    segments_copy(&graph, at, index->graph.end);
    segments_copy(&model, 0, index->graph.tag);
    segments_add_head(&model, MODEL_GRAPH, graph.total);
    segments_append(&model, &graph);
    segments_copy(&model, index->graph.end, (int64_t)file.bytes);
    return model;
}

/* ---- stripping ---- */

static bool is_shortest(const struct extent *e)
{
    int64_t n = 2;
    for (int64_t length = e->end - e->begin; length >= 0x80; length >>= 7)
        n++;
    return e->begin - e->tag == n;
}

static bool is_payload(const struct wire_index *index, const struct wire_initializer *item)
{
    return item->raw.end - item->raw.begin >= WEIGHT_BYTES && !item->external && is_shortest(&index->graph) &&
        is_shortest(&item->message) && is_shortest(&item->raw);
}

static Onnx__StringStringEntryProto placeholder_entry(struct arena *arena, const char *key, char *value)
{
    Onnx__StringStringEntryProto e = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    e.key = arena_strdup(arena, key);
    e.value = value;
    return e;
}

static char *decimal(struct arena *arena, int64_t n)
{
    return arena_printf(arena, "%lld", (long long)n);
}

static void add_placeholder(struct segments *body, const struct wire_initializer *item)
{
    struct arena *a = body->arena;
    Onnx__TensorProto placeholder = ONNX__TENSOR_PROTO__INIT;
    Onnx__StringStringEntryProto entries[] = {placeholder_entry(a, PLACEHOLDER_KEY, decimal(a, item->raw.tag - item->message.begin)),
                                              placeholder_entry(a, "location", arena_strdup(a, PLACEHOLDER_LOCATION)),
                                              placeholder_entry(a, "offset", decimal(a, item->raw.begin)),
                                              placeholder_entry(a, "length", decimal(a, item->raw.end - item->raw.begin))};
    Onnx__StringStringEntryProto *list[] = {&entries[0], &entries[1], &entries[2], &entries[3]};
    placeholder.n_external_data = sizeof list / sizeof *list;
    placeholder.external_data = list;
    placeholder.has_data_location = 1;
    placeholder.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    uint8_t *packed = arena_alloc(a, onnx__tensor_proto__get_packed_size(&placeholder));
    segments_add(body, (struct segment){.at = packed, .bytes = (int64_t)onnx__tensor_proto__pack(&placeholder, packed)});
}

static void strip_payload(void *data, struct segments *body, const struct wire_initializer *item)
{
    (void)data;
    segments_copy(body, item->message.begin, item->raw.tag);
    segments_copy(body, item->raw.end, item->message.end);
    add_placeholder(body, item);
}

struct map strip_weights(struct arena *arena, struct map file, const struct wire_index *index)
{
    if (!index->graph.end || index->stripped)
        return file;
    struct segments model = rewritten(arena, file, index, is_payload, strip_payload, NULL);
    uint8_t *buffer = arena_alloc(arena, (size_t)model.total), *at = buffer;
    for (int i = 0; i < model.list.n; at += model.list.at[i].bytes, i++)
        memcpy(at, model.list.at[i].at, (size_t)model.list.at[i].bytes);
    return (struct map){buffer, (size_t)model.total};
}

/* ---- restoring ---- */

static bool has_placeholder(const struct wire_index *index, const struct wire_initializer *item)
{
    (void)index;
    return item->placeholder != 0;
}

static void restore_payload(void *data, struct segments *body, const struct wire_initializer *item)
{
    const struct external_files *files = data;
    struct map bytes = {body->file + item->placeholder, (size_t)(item->message.end - item->placeholder)};
    const Onnx__TensorProto *t = wire_unpack(body->arena, files->path, MODEL_FILE, bytes, &onnx__tensor_proto__descriptor);
    int64_t begin = item->message.begin, at;
    struct source *from = NEW(body->arena, struct source), wanted = external_placeholder(files, t, "an initializer", &at);
    if (at > item->placeholder - begin)
        fail("%s: an initializer had its data at byte %lld of %lld", files->path, (long long)at, (long long)(item->placeholder - begin));
    if (!files->options->find(files->options->find_data, "", wanted.offset, wanted.length, from))
        fail("%s: an initializer has %lld bytes at %lld of the source, which no rank file holds", files->path, (long long)wanted.length,
             (long long)wanted.offset);
    segments_copy(body, begin, begin + at);
    segments_add_head(body, TENSOR_RAW_DATA, wanted.length);
    segments_add(body, (struct segment){.bytes = wanted.length, .payload = from});
    segments_copy(body, begin + at, item->placeholder);
}

/* ---- files ---- */

/* A model file and its weight-stripped form. */
struct stripped_model {
    struct arena *tmp;
    struct wire_index index;
    struct map file, stripped;
};

static struct stripped_model open_model(const char *path)
{
    struct stripped_model m = {.tmp = arena_new(), .file = map_file(path)};
    wire_check(m.tmp, path, MODEL_FILE, m.file, &onnx__model_proto__descriptor, &m.index);
    m.stripped = strip_weights(m.tmp, m.file, &m.index);
    return m;
}

static void close_model(struct stripped_model *m)
{
    map_close(m->file);
    arena_free(m->tmp);
}

struct written onnx_save_stripped(const char *path, const char *to)
{
    struct stripped_model m = open_model(path);
    struct out out;
    out_open(&out, to);
    out_put(&out, m.stripped.at, m.stripped.bytes);
    close_model(&m);
    return out_close(&out);
}

void onnx_restore(const char *path, const struct load_options *options, byte_taker *take, void *data)
{
    struct stripped_model m = open_model(path);
    struct external_files files = {.tmp = m.tmp, .path = path, .options = options};
    struct segments model = rewritten(m.tmp, m.file, &m.index, has_placeholder, restore_payload, &files);
    segments_write(&model, path, take, data);
    close_model(&m);
}

static void add_span(struct external_files *files, struct map stripped, const struct extent *at, struct spans *out)
{
    struct map bytes = {stripped.at + at->begin, (size_t)(at->end - at->begin)};
    struct arena *one = arena_new();
    struct span span;
    const Onnx__TensorProto *t = wire_unpack(one, files->path, MODEL_FILE, bytes, &onnx__tensor_proto__descriptor);
    if (proto_is_external(t) && external_span(files, t, arena_printf(one, "tensor '%s'", proto_text_or(t->name, "")), &span))
        VEC_PUSH(files->arena, out, span);
    arena_free(one);
}

struct spans onnx_spans(struct arena *arena, const char *path, const struct load_options *options)
{
    struct stripped_model m = open_model(path);
    struct external_files files = {.arena = arena, .tmp = m.tmp, .path = path, .options = options};
    struct wire_index places = {.stripped = false};
    struct spans spans = {NULL, 0, 0};
    wire_check(m.tmp, path, MODEL_FILE, m.stripped, &onnx__model_proto__descriptor, &places);
    for (int i = 0; i < places.tensors.n; i++)
        add_span(&files, m.stripped, &places.tensors.at[i], &spans);
    close_model(&m);
    return spans;
}
