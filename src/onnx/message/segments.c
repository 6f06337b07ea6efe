/* A message as segments: ranges of a mapped file, new bytes, and payloads in other files. Rewriting a model of gigabytes takes memory for
 * the new bytes only. */
#include "onnx/message/message.h"

#include <limits.h>

struct segments segments_new(struct arena *arena, const uint8_t *file)
{
    return (struct segments){.arena = arena, .file = file};
}

void segments_add(struct segments *s, struct segment piece)
{
    struct segment *last = s->list.n ? &s->list.at[s->list.n - 1] : NULL;
    if (!piece.bytes)
        return;
    if (!i64_add(s->total, piece.bytes, &s->total))
        fail("a message is out of range");
    if (last && !last->payload && !piece.payload && last->at + last->bytes == piece.at)
        last->bytes += piece.bytes;
    else
        VEC_PUSH(s->arena, &s->list, piece);
}

void segments_copy(struct segments *s, int64_t begin, int64_t end)
{
    segments_add(s, (struct segment){.at = s->file + begin, .bytes = end - begin});
}

void segments_append(struct segments *s, const struct segments *inner)
{
    for (int i = 0; i < inner->list.n; i++)
        segments_add(s, inner->list.at[i]);
}

static int64_t put_varint(uint8_t *at, uint64_t value)
{
    int64_t n = 0;
    for (; value >= 0x80; value >>= 7)
        at[n++] = (uint8_t)((value & 0x7f) | 0x80);
    at[n++] = (uint8_t)value;
    return n;
}

void segments_add_head(struct segments *s, uint32_t number, int64_t length)
{
    uint8_t *head = arena_alloc(s->arena, 20);
    int64_t n = put_varint(head, (uint64_t)number << 3 | 2);
    n += put_varint(head + n, (uint64_t)length);
    segments_add(s, (struct segment){.at = head, .bytes = n});
}

void segments_add_message(struct segments *s, uint32_t number, const ProtobufCMessage *message)
{
    uint8_t *packed = arena_alloc(s->arena, protobuf_c_message_get_packed_size(message));
    int64_t bytes = (int64_t)protobuf_c_message_pack(message, packed);
    segments_add_head(s, number, bytes);
    segments_add(s, (struct segment){.at = packed, .bytes = bytes});
}

void segments_write(const struct segments *model, const char *path, byte_taker *take, void *data)
{
    if (model->total > INT_MAX)
        fail("%s: the model would have %lld bytes, a protobuf message has less than 2 GiB", path, (long long)model->total);
    EACH (const struct segment, s, model->list) {
        if (!s->payload) {
            take(data, s->at, (size_t)s->bytes);
            continue;
        }
        source_stream(s->payload, path, 1, &(struct byte_range){0, s->bytes}, take, data);
        source_release(s->payload);
    }
}
