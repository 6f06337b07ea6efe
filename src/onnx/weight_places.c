/* weight_places: where the bytes of a model's initializers are in its files, so that weights of the same types and sizes can replace
 * them. */
#include "onnx/message/message.h"
#include "onnx/read/read.h"

#include <string.h>

static const char *entry_value(const Onnx__TensorProto *t, const char *key)
{
    for (size_t i = 0; i < t->n_external_data; i++)
        if (strcmp(proto_text_or(t->external_data[i]->key, ""), key) == 0)
            return proto_text_or(t->external_data[i]->value, "");
    return "";
}

/* The tensor's message without a big payload; *in_file: its extent in the file. */
static struct weight_place place_of(struct arena *a, const char *path, struct map message, const struct wire_initializer *in_file)
{
    const Onnx__TensorProto *t = wire_unpack(a, path, MODEL_FILE, message, &onnx__tensor_proto__descriptor);
    struct weight_place w = {.name = proto_text_or(t->name, ""), .file = "", .offset = in_file->raw.begin};
    w.tensor.dtype = tensor_layout(a, t, path, arena_printf(a, "initializer '%s'", w.name), w.tensor.dim, &w.bytes);
    w.tensor.rank = (int)t->n_dims;
    if (in_file->external) {
        w.file = arena_strdup(a, entry_value(t, "location"));
        w.offset = 0;
        (void)i64_parse(entry_value(t, "offset"), 0, INT64_MAX, &w.offset);
    } else if (in_file->raw.end - in_file->raw.begin != w.bytes)
        w.file = NULL;
    return w;
}

struct weight_places onnx_weight_places(struct arena *a, const char *path)
{
    struct map file = map_file(path);
    struct wire_index index = {.stripped = false}, small = index;
    struct weight_places places = {NULL, 0, 0};
    wire_check(a, path, MODEL_FILE, file, &onnx__model_proto__descriptor, &index);
    struct map stripped = strip_weights(a, file, &index);
    wire_check(a, path, MODEL_FILE, stripped, &onnx__model_proto__descriptor, &small);
    require(small.initializers.n == index.initializers.n);
    for (int i = 0; i < small.initializers.n; i++) {
        const struct extent *at = &small.initializers.at[i].message;
        struct map message = {stripped.at + at->begin, (size_t)(at->end - at->begin)};
        VEC_PUSH(a, &places, place_of(a, path, message, &index.initializers.at[i]));
    }
    map_close(file);
    return places;
}
