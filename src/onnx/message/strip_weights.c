/* A light model: the bytes of a model file in which the big payloads are replaced by marks. It is what protobuf-c unpacks (weights stay
 * in the file, to be mapped) and what a folder keeps as model.onnx.
 *
 * A payload is the raw_data, of INLINE_BYTES and more, of an initializer of the main graph. Its mark stands at the end of the tensor's
 * message and makes it a tensor with external data: entries MARK_KEY (where in the message raw_data began), location, offset and
 * length (of the payload in the model file), then data_location. All else is copied, so that putting the payloads back gives the same
 * file, byte for byte. That takes lengths in their shortest form around the payload: where they are not, it stays. */
#include "onnx/private.h"

#include <string.h>

/* ---- what a model is made of: initializers that change, and all else ---- */

typedef bool chooser(const struct wire_index *, const struct wire_initializer *);
typedef void rewrite(void *, struct pieces *body, const struct wire_initializer *);

static struct pieces rewritten(struct arena *arena, struct map file, const struct wire_index *index, chooser *changes, rewrite *change,
                               void *data)
{
    struct pieces graph = pieces_from(arena, file.at), model = graph;
    int64_t at = index->graph.begin;
    for (int i = 0; i < index->initializers.n; i++) {
        const struct wire_initializer *item = &index->initializers.at[i];
        if (!changes(index, item))
            continue;
        struct pieces body = pieces_from(arena, file.at);
        change(data, &body, item);
        pieces_copy(&graph, at, item->message.tag);
        pieces_put_head(&graph, GRAPH_INITIALIZER, body.total);
        pieces_append(&graph, &body);
        at = item->message.end;
    }
    pieces_copy(&graph, at, index->graph.end);
    pieces_copy(&model, 0, index->graph.tag);
    pieces_put_head(&model, MODEL_GRAPH, graph.total);
    pieces_append(&model, &graph);
    pieces_copy(&model, index->graph.end, (int64_t)file.bytes);
    return model;
}

/* ---- taking payloads out ---- */

static bool is_shortest(const struct extent *e)
{
    int64_t n = 2;
    for (int64_t length = e->end - e->begin; length >= 0x80; length >>= 7)
        n++;
    return e->begin - e->tag == n;
}

static bool is_payload(const struct wire_index *index, const struct wire_initializer *item)
{
    return item->raw.end - item->raw.begin >= INLINE_BYTES && !item->external && is_shortest(&index->graph) &&
        is_shortest(&item->message) && is_shortest(&item->raw);
}

static Onnx__StringStringEntryProto entry(struct arena *arena, const char *key, char *value)
{
    Onnx__StringStringEntryProto e = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    e.key = arena_strdup(arena, key);
    e.value = value;
    return e;
}

static char *number(struct arena *arena, int64_t n)
{
    return arena_printf(arena, "%lld", (long long)n);
}

static void put_mark(struct pieces *body, const struct wire_initializer *item)
{
    struct arena *a = body->arena;
    Onnx__TensorProto mark = ONNX__TENSOR_PROTO__INIT;
    Onnx__StringStringEntryProto entries[] = {
        entry(a, MARK_KEY, number(a, item->raw.tag - item->message.begin)), entry(a, "location", arena_strdup(a, MARK_LOCATION)),
        entry(a, "offset", number(a, item->raw.begin)), entry(a, "length", number(a, item->raw.end - item->raw.begin))};
    Onnx__StringStringEntryProto *list[] = {&entries[0], &entries[1], &entries[2], &entries[3]};
    mark.n_external_data = sizeof list / sizeof *list;
    mark.external_data = list;
    mark.has_data_location = 1;
    mark.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    uint8_t *packed = arena_alloc(a, onnx__tensor_proto__get_packed_size(&mark));
    pieces_add(body, (struct segment){.at = packed, .bytes = (int64_t)onnx__tensor_proto__pack(&mark, packed)});
}

static void take_out(void *data, struct pieces *body, const struct wire_initializer *item)
{
    (void)data;
    pieces_copy(body, item->message.begin, item->raw.tag);
    pieces_copy(body, item->raw.end, item->message.end);
    put_mark(body, item);
}

struct map light_model(struct arena *arena, struct map file, const struct wire_index *index)
{
    if (!index->graph.end || index->light)
        return file;
    struct pieces model = rewritten(arena, file, index, is_payload, take_out, NULL);
    uint8_t *buffer = arena_alloc(arena, (size_t)model.total), *at = buffer;
    for (int i = 0; i < model.list.n; at += model.list.at[i].bytes, i++)
        memcpy(at, model.list.at[i].at, (size_t)model.list.at[i].bytes);
    return (struct map){buffer, (size_t)model.total};
}

/* ---- putting them back ---- */

static bool has_mark(const struct wire_index *index, const struct wire_initializer *item)
{
    (void)index;
    return item->mark != 0;
}

static void put_back(void *data, struct pieces *body, const struct wire_initializer *item)
{
    const struct import *im = data;
    struct map bytes = {body->file + item->mark, (size_t)(item->message.end - item->mark)};
    const Onnx__TensorProto *t = wire_unpack(body->arena, im->path, MODEL_FILE, bytes, &onnx__tensor_proto__descriptor);
    int64_t begin = item->message.begin, at;
    struct source *from = NEW(body->arena, struct source), wanted = external_payload(im, t, "an initializer", &at);
    if (at > item->mark - begin)
        fail("%s: an initializer had its data at byte %lld of %lld", im->path, (long long)at, (long long)(item->mark - begin));
    if (!im->options->find(im->options->find_data, "", wanted.offset, wanted.length, from))
        fail("%s: an initializer has %lld bytes at %lld of the source, which no rank file holds", im->path, (long long)wanted.length,
             (long long)wanted.offset);
    pieces_copy(body, begin, begin + at);
    pieces_put_head(body, TENSOR_RAW_DATA, wanted.length);
    pieces_add(body, (struct segment){.bytes = wanted.length, .payload = from});
    pieces_copy(body, begin + at, item->mark);
}

/* ---- files ---- */

/* A model file and its light form. */
struct lightened {
    struct arena *tmp;
    struct wire_index index;
    struct map file, light;
};

static struct lightened open_model(const char *path)
{
    struct lightened m = {.tmp = arena_new(), .file = map_file(path)};
    wire_check(m.tmp, path, MODEL_FILE, m.file, &onnx__model_proto__descriptor, &m.index);
    m.light = light_model(m.tmp, m.file, &m.index);
    return m;
}

static void close_model(struct lightened *m)
{
    unmap(m->file);
    arena_free(m->tmp);
}

struct written onnx_save_light(const char *path, const char *to)
{
    struct lightened m = open_model(path);
    struct out out;
    out_open(&out, to);
    out_put(&out, m.light.at, m.light.bytes);
    close_model(&m);
    return out_close(&out);
}

void onnx_restore(const char *path, const struct load_options *options, byte_taker *take, void *data)
{
    struct lightened m = open_model(path);
    struct import im = {.tmp = m.tmp, .path = path, .options = options};
    struct pieces model = rewritten(m.tmp, m.file, &m.index, has_mark, put_back, &im);
    pieces_give(&model, path, take, data);
    close_model(&m);
}

static void add_span(struct import *im, struct map light, const struct extent *at, struct spans *out)
{
    struct map bytes = {light.at + at->begin, (size_t)(at->end - at->begin)};
    struct arena *one = arena_new();
    struct span span;
    const Onnx__TensorProto *t = wire_unpack(one, im->path, MODEL_FILE, bytes, &onnx__tensor_proto__descriptor);
    if (is_external(t) && external_span(im, t, arena_printf(one, "tensor '%s'", text_or(t->name, "")), &span))
        VEC_PUSH(im->arena, out, span);
    arena_free(one);
}

struct spans onnx_spans(struct arena *arena, const char *path, const struct load_options *options)
{
    struct lightened m = open_model(path);
    struct import im = {.arena = arena, .tmp = m.tmp, .path = path, .options = options};
    struct wire_index places = {.light = false};
    struct spans spans = {NULL, 0, 0};
    wire_check(m.tmp, path, MODEL_FILE, m.light, &onnx__model_proto__descriptor, &places);
    for (int i = 0; i < places.tensors.n; i++)
        add_span(&im, m.light, &places.tensors.at[i], &spans);
    close_model(&m);
    return spans;
}
