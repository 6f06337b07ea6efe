/* A message as pieces: ranges of a mapped file, bytes of our own, and payloads that are elsewhere. What is made of a model of gigabytes
 * this way takes the memory of what is new in it. */
#include "onnx/private.h"

#include <limits.h>

struct pieces pieces_from(struct arena *arena, const uint8_t *file)
{
    return (struct pieces){.arena = arena, .file = file};
}

void pieces_add(struct pieces *p, struct segment s)
{
    struct segment *last = p->list.n ? &p->list.at[p->list.n - 1] : NULL;
    if (!s.bytes)
        return;
    if (!add_i64(p->total, s.bytes, &p->total))
        fail("a message is out of range");
    if (last && !last->payload && !s.payload && last->at + last->bytes == s.at)
        last->bytes += s.bytes;
    else
        VEC_PUSH(p->arena, &p->list, s);
}

void pieces_copy(struct pieces *p, int64_t begin, int64_t end)
{
    pieces_add(p, (struct segment){.at = p->file + begin, .bytes = end - begin});
}

void pieces_append(struct pieces *p, const struct pieces *inner)
{
    for (int i = 0; i < inner->list.n; i++)
        pieces_add(p, inner->list.at[i]);
}

static int64_t put_varint(uint8_t *at, uint64_t value)
{
    int64_t n = 0;
    for (; value >= 0x80; value >>= 7)
        at[n++] = (uint8_t)((value & 0x7f) | 0x80);
    at[n++] = (uint8_t)value;
    return n;
}

void pieces_put_head(struct pieces *p, uint32_t number, int64_t length)
{
    uint8_t *head = arena_alloc(p->arena, 20);
    int64_t n = put_varint(head, (uint64_t)number << 3 | 2);
    n += put_varint(head + n, (uint64_t)length);
    pieces_add(p, (struct segment){.at = head, .bytes = n});
}

void pieces_put_message(struct pieces *p, uint32_t number, const ProtobufCMessage *message)
{
    uint8_t *packed = arena_alloc(p->arena, protobuf_c_message_get_packed_size(message));
    int64_t bytes = (int64_t)protobuf_c_message_pack(message, packed);
    pieces_put_head(p, number, bytes);
    pieces_add(p, (struct segment){.at = packed, .bytes = bytes});
}

void pieces_give(const struct pieces *model, const char *path, byte_taker *take, void *data)
{
    if (model->total > INT_MAX)
        fail("%s: the model would have %lld bytes, a protobuf message has less than 2 GiB", path, (long long)model->total);
    for (int i = 0; i < model->list.n; i++) {
        const struct segment *s = &model->list.at[i];
        if (!s->payload) {
            take(data, s->at, (size_t)s->bytes);
            continue;
        }
        source_stream(s->payload, path, 1, &(struct byte_range){0, s->bytes}, take, data);
        source_release(s->payload);
    }
}
