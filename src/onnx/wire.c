/* The wire format, before protobuf-c sees it.
 *
 * protobuf-c has no depth limit and copies every bytes field. So the file is walked once by the message descriptors: every tag,
 * length and nesting is checked, and the place of each initializer of the main graph is noted. Then a copy is made that lacks their
 * big raw_data (three nested lengths are rewritten), and only that copy is unpacked: weights stay in the file, to be mapped. */
#include <limits.h>
#include <string.h>

#include "onnx/private.h"

#define MAX_DEPTH 100
enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_RAW_DATA = 9 };
enum role { ROLE_OTHER, ROLE_MODEL, ROLE_GRAPH, ROLE_INITIALIZER };

struct walk {
    struct arena *arena;
    const char *path, *what;
    const uint8_t *bytes;
    struct wire_index *index;
};
struct field { int64_t tag, begin, end; uint32_t number; int wire; const ProtobufCFieldDescriptor *known; };

static _Noreturn void bad(const struct walk *w, int64_t at, const char *why)
{
    fail("%s: not %s: %s at byte %lld", w->path, w->what, why, (long long)at);
}

static uint64_t read_varint(const struct walk *w, int64_t *at, int64_t end)
{
    uint64_t value = 0;
    int64_t start = *at;
    for (int shift = 0; shift < 70; shift += 7) {
        if (*at >= end) bad(w, start, "a number that is cut off");
        uint8_t byte = w->bytes[(*at)++];
        if (shift == 63 && byte > 1) bad(w, start, "a number of more than 64 bits");
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    bad(w, start, "a number of more than 64 bits");
}

static bool packable(ProtobufCType type)
{
    return type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES && type != PROTOBUF_C_TYPE_MESSAGE;
}

static int wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED64: case PROTOBUF_C_TYPE_FIXED64: case PROTOBUF_C_TYPE_DOUBLE: return 1;
    case PROTOBUF_C_TYPE_SFIXED32: case PROTOBUF_C_TYPE_FIXED32: case PROTOBUF_C_TYPE_FLOAT: return 5;
    case PROTOBUF_C_TYPE_STRING: case PROTOBUF_C_TYPE_BYTES: case PROTOBUF_C_TYPE_MESSAGE: return 2;
    default: return 0;
    }
}

/* A known field must come in the wire type of its declaration. */
static void check_kind(const struct walk *w, const struct field *f)
{
    if (!f->known) return;
    int wire = wire_of(f->known->type);
    if (f->wire == wire) return;
    if (f->wire == 2 && f->known->label == PROTOBUF_C_LABEL_REPEATED && packable(f->known->type)) {
        if (wire && (f->end - f->begin) % (wire == 1 ? 8 : 4)) bad(w, f->tag, "a list of broken length");
        return;
    }
    bad(w, f->tag, "a field of the wrong kind");
}

static struct field read_field(const struct walk *w, const ProtobufCMessageDescriptor *message, int64_t at, int64_t end)
{
    struct field f = { .tag = at };
    uint64_t tag = read_varint(w, &at, end), number = tag >> 3;
    if (!number || number > 536870911) bad(w, f.tag, "a field number out of range");
    f.number = (uint32_t)number;
    f.wire = (int)(tag & 7);
    f.known = protobuf_c_message_descriptor_get_field(message, f.number);
    uint64_t length = 0;
    f.begin = at;
    switch (f.wire) {
    case 0: read_varint(w, &at, end); length = (uint64_t)(at - f.begin); break;
    case 1: length = 8; break;
    case 2: length = read_varint(w, &at, end); f.begin = at; break;
    case 5: length = 4; break;
    default: bad(w, f.tag, "an unknown kind of field");
    }
    if (length > (uint64_t)(end - f.begin)) bad(w, f.tag, "a field that is cut off");
    f.end = f.begin + (int64_t)length;
    check_kind(w, &f);
    return f;
}

static struct extent extent_of(const struct field *f)
{
    return (struct extent){ f->tag, f->begin, f->end };
}

/* The role of a nested message, noting what wire_strip needs. */
static enum role note(const struct walk *w, enum role role, const struct field *f)
{
    if (!w->index) return ROLE_OTHER;
    if (role == ROLE_MODEL && f->number == MODEL_GRAPH) {
        if (w->index->graph.end) bad(w, f->tag, "a second graph");
        w->index->graph = extent_of(f);
        return ROLE_GRAPH;
    }
    if (role == ROLE_GRAPH && f->number == GRAPH_INITIALIZER) {
        struct wire_initializer item = { .message = extent_of(f) };
        VEC_PUSH(w->arena, &w->index->initializers, item);
        return ROLE_INITIALIZER;
    }
    if (role == ROLE_INITIALIZER && f->number == TENSOR_RAW_DATA) {
        struct wire_initializer *item = &w->index->initializers.at[w->index->initializers.n - 1];
        if (item->raw.end) bad(w, f->tag, "a second raw_data");
        item->raw = extent_of(f);
    }
    return ROLE_OTHER;
}

static void walk_message(const struct walk *w, const ProtobufCMessageDescriptor *message, int64_t at, int64_t end, int depth, enum role role)
{
    if (depth > MAX_DEPTH) bad(w, at, "messages nested more than 100 deep");
    while (at < end) {
        struct field f = read_field(w, message, at, end);
        enum role inner = note(w, role, &f);
        if (f.known && f.known->type == PROTOBUF_C_TYPE_MESSAGE)
            walk_message(w, f.known->descriptor, f.begin, f.end, depth + 1, inner);
        at = f.end;
    }
}

void wire_check(struct arena *arena, const char *path, const char *what, struct map file, const ProtobufCMessageDescriptor *message, struct wire_index *index)
{
    struct walk w = { arena, path, what, file.at, index };
    if (!file.bytes) fail("%s: not %s: the file is empty", path, what);
    if (file.bytes > INT_MAX) fail("%s: not %s: it has %zu bytes, a protobuf message has less than 2 GiB (weights belong in external data)", path, what, file.bytes);
    walk_message(&w, message, 0, (int64_t)file.bytes, 1, index ? ROLE_MODEL : ROLE_OTHER);
}

/* ---- stripping ---- */

bool wire_stripped(const struct wire_initializer *item)
{
    return item->raw.end - item->raw.begin >= INLINE_BYTES;
}

static int64_t cut_length(const struct wire_initializer *item)
{
    return wire_stripped(item) ? item->raw.end - item->raw.tag : 0;
}

static int varint_length(int64_t n)
{
    int length = 1;
    while (n >>= 7) length++;
    return length;
}

struct writer { uint8_t *at; const uint8_t *source; };

static void copy(struct writer *w, int64_t begin, int64_t end)
{
    if (end > begin) memcpy(w->at, w->source + begin, (size_t)(end - begin));
    w->at += end - begin;
}

/* Tag (one byte: both field numbers are below 16) and length. */
static void put_head(struct writer *w, int number, int64_t length)
{
    *w->at++ = (uint8_t)(number << 3 | 2);
    for (; length >= 0x80; length >>= 7) *w->at++ = (uint8_t)((length & 0x7f) | 0x80);
    *w->at++ = (uint8_t)length;
}

static int64_t stripped_graph_length(const struct wire_index *index)
{
    int64_t length = index->graph.end - index->graph.begin;
    for (int i = 0; i < index->initializers.n; i++) {
        const struct wire_initializer *item = &index->initializers.at[i];
        int64_t body = item->message.end - item->message.begin - cut_length(item);
        length -= item->message.end - item->message.tag;
        length += 1 + varint_length(body) + body;
    }
    return length;
}

static void copy_initializer(struct writer *w, const struct wire_initializer *item)
{
    put_head(w, GRAPH_INITIALIZER, item->message.end - item->message.begin - cut_length(item));
    if (!wire_stripped(item)) {
        copy(w, item->message.begin, item->message.end);
        return;
    }
    copy(w, item->message.begin, item->raw.tag);
    copy(w, item->raw.end, item->message.end);
}

struct map wire_strip(struct arena *arena, struct map file, const struct wire_index *index)
{
    if (!index->graph.end) return file;
    int64_t body = stripped_graph_length(index);
    int64_t rest = (int64_t)file.bytes - (index->graph.end - index->graph.tag);
    int64_t total = rest + 1 + varint_length(body) + body;
    uint8_t *buffer = arena_alloc(arena, (size_t)total);
    struct writer w = { buffer, file.at };
    copy(&w, 0, index->graph.tag);
    put_head(&w, MODEL_GRAPH, body);
    int64_t at = index->graph.begin;
    for (int i = 0; i < index->initializers.n; i++) {
        const struct wire_initializer *item = &index->initializers.at[i];
        copy(&w, at, item->message.tag);
        copy_initializer(&w, item);
        at = item->message.end;
    }
    copy(&w, at, index->graph.end);
    copy(&w, index->graph.end, (int64_t)file.bytes);
    require(w.at == buffer + total);
    return (struct map){ buffer, (size_t)total };
}

/* ---- unpacking ---- */

static void *take(void *arena, size_t bytes)
{
    return arena_alloc(arena, bytes);
}

static void drop(void *arena, void *at)
{
    (void)arena;
    (void)at;
}

void *wire_unpack(struct arena *arena, const char *path, const char *what, struct map bytes, const ProtobufCMessageDescriptor *message)
{
    ProtobufCAllocator allocator = { take, drop, arena };
    void *result = protobuf_c_message_unpack(message, &allocator, bytes.bytes, bytes.at);
    if (!result) fail("%s: not %s: protobuf-c can't unpack it", path, what);
    return result;
}
