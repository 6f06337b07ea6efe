/* relocate: a model whose external data moved to another file. Every external tensor gets the new file's name, and its offset grows by the
 * old file's position in the new one. All else is copied; enclosing lengths are rewritten. */
#include "onnx/message/message.h"

#include <stdlib.h>
#include <string.h>

struct relocating {
    struct arena *arena;
    const char *path;
    struct map file;
    const struct relocation *to;
    struct extent *tensor; /* those that change, in file order */
    int n;
};

static Onnx__StringStringEntryProto *entry_at(const struct relocating *r, const struct wire_field *f)
{
    struct map bytes = {r->file.at + f->begin, (size_t)(f->end - f->begin)};
    return wire_unpack(r->arena, r->path, MODEL_FILE, bytes, &onnx__string_string_entry_proto__descriptor);
}

/* The file that holds the tensor's bytes; NULL: they are in the model. */
static const char *location_of(const struct relocating *r, const struct extent *tensor)
{
    const char *location = NULL;
    for (int64_t at = wire_is_external(r->file, tensor) ? tensor->begin : tensor->end; at < tensor->end;) {
        struct wire_field f = wire_next(r->file, &at, tensor->end);
        const Onnx__StringStringEntryProto *e = f.number == TENSOR_EXTERNAL_DATA ? entry_at(r, &f) : NULL;
        if (e && strcmp(proto_text_or(e->key, ""), "location") == 0)
            location = proto_text_or(e->value, "");
    }
    return location;
}

static bool moves(const struct relocating *r, const struct extent *tensor, struct relocated *old)
{
    const char *location = location_of(r, tensor);
    return location && r->to->find(r->to->data, location, old);
}

static void put_entry(const struct relocating *r, struct segments *body, const char *key, const char *value)
{
    Onnx__StringStringEntryProto e = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    e.key = arena_strdup(r->arena, key);
    e.value = arena_strdup(r->arena, value);
    segments_add_message(body, TENSOR_EXTERNAL_DATA, &e.base);
}

static void put_number(const struct relocating *r, struct segments *body, const char *key, int64_t number)
{
    put_entry(r, body, key, arena_printf(r->arena, "%lld", (long long)number));
}

static int64_t offset_of(const struct relocating *r, const char *text)
{
    int64_t offset;
    if (!i64_parse(text, 0, INT64_MAX, &offset))
        fail("%s: a tensor has external data with offset '%s', expected a number of bytes", r->path, text);
    return offset;
}

/* A range to the end of a file gets a length. The old file's checksum is dropped. */
static struct segments moved_tensor(const struct relocating *r, const struct extent *tensor)
{
    struct segments body = segments_new(r->arena, r->file.at);
    struct relocated old = {0, 0};
    int64_t offset = 0, moved;
    bool has_length = false;
    (void)moves(r, tensor, &old);
    for (int64_t at = tensor->begin; at < tensor->end;) {
        struct wire_field f = wire_next(r->file, &at, tensor->end);
        const Onnx__StringStringEntryProto *e = f.number == TENSOR_EXTERNAL_DATA ? entry_at(r, &f) : NULL;
        const char *key = e ? proto_text_or(e->key, "") : "", *value = e ? proto_text_or(e->value, "") : "";
        if (strcmp(key, "offset") == 0)
            offset = offset_of(r, value);
        else if (!e || (strcmp(key, "location") != 0 && strcmp(key, "checksum") != 0))
            segments_copy(&body, f.tag, f.end);
        has_length = has_length || strcmp(key, "length") == 0;
    }
    if (!i64_add(old.base, offset, &moved) || offset > old.end)
        fail("%s: a tensor has external data at %lld of a file of %lld bytes", r->path, (long long)offset, (long long)old.end);
    put_entry(r, &body, "location", r->to->location);
    put_number(r, &body, "offset", moved);
    if (!has_length)
        put_number(r, &body, "length", old.end - offset);
    return body;
}

/* The first tensor that ends after `at`. */
static int tensor_from(const struct relocating *r, int64_t at)
{
    int lo = 0, hi = r->n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (r->tensor[middle].begin < at)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* The message at [begin, end), in which a tensor changes. The recursion depth is the file's, which was checked. */
static struct segments moved_message(const struct relocating *r, int64_t begin, int64_t end, const ProtobufCMessageDescriptor *message)
{
    struct segments body = segments_new(r->arena, r->file.at);
    for (int64_t at = begin; at < end;) {
        struct wire_field f = wire_next(r->file, &at, end);
        const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(message, f.number);
        int i = tensor_from(r, f.begin);
        if (!known || known->type != PROTOBUF_C_TYPE_MESSAGE || i == r->n || r->tensor[i].end > f.end) {
            segments_copy(&body, f.tag, f.end);
            continue;
        }
        bool is_tensor = known->descriptor == &onnx__tensor_proto__descriptor;
        struct segments inner = is_tensor ? moved_tensor(r, &r->tensor[i]) : moved_message(r, f.begin, f.end, known->descriptor);
        segments_add_head(&body, f.number, inner.total);
        segments_append(&body, &inner);
    }
    return body;
}

static int by_place(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static struct relocating open_model(struct arena *a, const char *path, struct wire_index *index)
{
    struct relocating r = {.arena = a, .path = path, .file = map_file(path)};
    wire_check(a, path, MODEL_FILE, r.file, &onnx__model_proto__descriptor, index);
    return r;
}

void onnx_relocate(const char *path, const struct relocation *to, byte_taker *take, void *data)
{
    struct arena *a = arena_new();
    struct wire_index index = {.stripped = false};
    struct relocating r = open_model(a, path, &index);
    struct relocated old;
    r.to = to;
    r.tensor = NEWN(a, struct extent, index.tensors.n + 1);
    for (int i = 0; i < index.tensors.n; i++)
        if (moves(&r, &index.tensors.at[i], &old))
            r.tensor[r.n++] = index.tensors.at[i];
    qsort(r.tensor, (size_t)r.n, sizeof *r.tensor, by_place);
    struct segments model = moved_message(&r, 0, (int64_t)r.file.bytes, &onnx__model_proto__descriptor);
    segments_write(&model, path, take, data);
    map_close(r.file);
    arena_free(a);
}

void onnx_each_location(const char *path, void (*see)(void *, const char *location), void *data)
{
    struct arena *a = arena_new();
    struct wire_index index = {.stripped = false};
    struct relocating r = open_model(a, path, &index);
    for (int i = 0; i < index.tensors.n; i++) {
        const char *location = location_of(&r, &index.tensors.at[i]);
        if (location)
            see(data, location);
    }
    map_close(r.file);
    arena_free(a);
}
