/* The wire format, before protobuf-c sees it.
 *
 * protobuf-c has no depth limit and copies every bytes field. So the file is walked once by the message descriptors: every tag, length and
 * nesting is checked, and the positions of tensors are noted, for strip_weights.c. */
#include "onnx/message/message.h"

#include <limits.h>
#include <string.h>

#define MAX_DEPTH 100
enum wire_role { ROLE_OTHER, ROLE_MODEL, ROLE_GRAPH, ROLE_INITIALIZER };

struct wire_walk {
    struct arena *arena;
    const char *path, *what;
    const uint8_t *bytes;
    struct wire_index *index;
};

static _Noreturn void bad_wire(const struct wire_walk *w, int64_t at, const char *why)
{
    fail("%s: not %s: %s at byte %lld", w->path, w->what, why, (long long)at);
}

static uint64_t read_varint(const struct wire_walk *w, int64_t *at, int64_t end)
{
    uint64_t value = 0;
    int64_t start = *at;
    for (int shift = 0; shift < 70; shift += 7) {
        if (*at >= end)
            bad_wire(w, start, "a number that is cut off");
        uint8_t byte = w->bytes[(*at)++];
        if (shift == 63 && byte > 1)
            bad_wire(w, start, "a number of more than 64 bits");
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    bad_wire(w, start, "a number of more than 64 bits");
}

static bool is_packable(ProtobufCType type)
{
    return type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES && type != PROTOBUF_C_TYPE_MESSAGE;
}

static int wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 1;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return 5;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return 2;
    default: return 0;
    }
}

/* A known field must have the wire type of its declaration. */
static void check_wire_type(const struct wire_walk *w, const struct wire_field *f)
{
    if (!f->known)
        return;
    int wire = wire_of(f->known->type);
    if (f->wire == wire)
        return;
    if (f->wire == 2 && f->known->label == PROTOBUF_C_LABEL_REPEATED && is_packable(f->known->type)) {
        if (wire && (f->end - f->begin) % (wire == 1 ? 8 : 4))
            bad_wire(w, f->tag, "a list of broken length");
        return;
    }
    bad_wire(w, f->tag, "a field of the wrong kind");
}

static struct wire_field read_field(const struct wire_walk *w, const ProtobufCMessageDescriptor *message, int64_t at, int64_t end)
{
    struct wire_field f = {.tag = at};
    uint64_t tag = read_varint(w, &at, end), number = tag >> 3;
    if (!number || number > 536870911)
        bad_wire(w, f.tag, "a field number out of range");
    f.number = (uint32_t)number;
    f.wire = (int)(tag & 7);
    f.known = message ? protobuf_c_message_descriptor_get_field(message, f.number) : NULL;
    uint64_t length = 0;
    f.begin = at;
    switch (f.wire) {
    case 0:
        read_varint(w, &at, end);
        length = (uint64_t)(at - f.begin);
        break;
    case 1: length = 8; break;
    case 2:
        length = read_varint(w, &at, end);
        f.begin = at;
        break;
    case 5: length = 4; break;
    default: bad_wire(w, f.tag, "an unknown kind of field");
    }
    if (length > (uint64_t)(end - f.begin))
        bad_wire(w, f.tag, "a field that is cut off");
    f.end = f.begin + (int64_t)length;
    check_wire_type(w, &f);
    return f;
}

static struct extent extent_of(const struct wire_field *f)
{
    return (struct extent){f->tag, f->begin, f->end};
}

/* What strip_weights.c needs to know of an initializer. */
static void note_initializer(const struct wire_walk *w, struct wire_initializer *item, const struct wire_field *f)
{
    static const uint8_t key[] = "\012\007" PLACEHOLDER_KEY;
    int64_t at = f->begin;
    if (f->number == TENSOR_RAW_DATA) {
        if (item->raw.end)
            bad_wire(w, f->tag, "a second raw_data");
        item->raw = extent_of(f);
    } else if (f->number == TENSOR_DATA_LOCATION) {
        item->external = read_varint(w, &at, f->end) != 0;
    } else if (f->number == TENSOR_EXTERNAL_DATA && !item->placeholder && f->end - at >= (int64_t)sizeof key - 1 &&
               memcmp(w->bytes + at, key, sizeof key - 1) == 0) {
        item->placeholder = f->tag;
        w->index->stripped = true;
    }
}

/* The role of a nested message, noting what strip_weights.c needs. */
static enum wire_role note_field(const struct wire_walk *w, enum wire_role role, const struct wire_field *f)
{
    if (!w->index)
        return ROLE_OTHER;
    if (f->known && f->known->type == PROTOBUF_C_TYPE_MESSAGE && f->known->descriptor == (const void *)&onnx__tensor_proto__descriptor)
        VEC_PUSH(w->arena, &w->index->tensors, extent_of(f));
    if (role == ROLE_MODEL && f->number == MODEL_GRAPH) {
        if (w->index->graph.end)
            bad_wire(w, f->tag, "a second graph");
        w->index->graph = extent_of(f);
        return ROLE_GRAPH;
    }
    if (role == ROLE_GRAPH && f->number == GRAPH_INITIALIZER) {
        struct wire_initializer item = {.message = extent_of(f)};
        VEC_PUSH(w->arena, &w->index->initializers, item);
        return ROLE_INITIALIZER;
    }
    if (role == ROLE_INITIALIZER)
        note_initializer(w, &w->index->initializers.at[w->index->initializers.n - 1], f);
    return ROLE_OTHER;
}

static void walk_message(const struct wire_walk *w, const ProtobufCMessageDescriptor *message, int64_t at, int64_t end, int depth,
                         enum wire_role role)
{
    if (depth > MAX_DEPTH)
        bad_wire(w, at, "messages nested more than 100 deep");
    while (at < end) {
        struct wire_field f = read_field(w, message, at, end);
        enum wire_role inner = note_field(w, role, &f);
        if (f.known && f.known->type == PROTOBUF_C_TYPE_MESSAGE)
            walk_message(w, f.known->descriptor, f.begin, f.end, depth + 1, inner);
        at = f.end;
    }
}

void wire_check(struct arena *arena, const char *path, const char *what, struct map file, const ProtobufCMessageDescriptor *message,
                struct wire_index *index)
{
    struct wire_walk w = {arena, path, what, file.at, index};
    if (!file.bytes)
        fail("%s: not %s: the file is empty", path, what);
    if (file.bytes > INT_MAX)
        fail("%s: not %s: it has %zu bytes, a protobuf message has less than 2 GiB (weights belong in external data)", path, what,
             file.bytes);
    walk_message(&w, message, 0, (int64_t)file.bytes, 1, index ? ROLE_MODEL : ROLE_OTHER);
}

struct wire_field wire_next(struct map file, int64_t *at, int64_t end)
{
    const struct wire_walk w = {.bytes = file.at};
    struct wire_field f = read_field(&w, NULL, *at, end);
    *at = f.end;
    return f;
}

bool wire_is_external(struct map file, const struct extent *tensor)
{
    for (int64_t at = tensor->begin; at < tensor->end;)
        if (wire_next(file, &at, tensor->end).number == TENSOR_DATA_LOCATION && file.at[at - 1])
            return true;
    return false;
}

/* ---- unpacking ---- */

static void *unpack_alloc(void *arena, size_t bytes)
{
    return arena_alloc(arena, bytes);
}

static void unpack_free(void *arena, void *at)
{
    (void)arena;
    (void)at;
}

void *wire_unpack(struct arena *arena, const char *path, const char *what, struct map bytes, const ProtobufCMessageDescriptor *message)
{
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, arena};
    void *result = protobuf_c_message_unpack(message, &allocator, bytes.bytes, bytes.at);
    if (!result)
        fail("%s: not %s: protobuf-c can't unpack it", path, what);
    return result;
}
