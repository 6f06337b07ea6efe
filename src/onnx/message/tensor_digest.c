/* tensor_digest: the digest of a tensor's content, in the metadata of its message. */
#include "onnx/message/message.h"

/* Each string is hashed with its final zero byte, so that strings do not run together. */
struct constant_digest tensor_digest_of(const Onnx__TensorProto *t, const void *at, int64_t bytes)
{
    struct arena *tmp = arena_new();
    const bool strings = t->data_type == DT_STRING;
    int64_t total = strings ? 0 : bytes;
    for (size_t i = 0; strings && i < t->n_string_data; i++)
        total += (int64_t)t->string_data[i].len + 1;
    struct digester *d = digest_new(tmp, total);
    for (size_t i = 0; strings && i < t->n_string_data; i++) {
        digest_take(d, t->string_data[i].data, t->string_data[i].len);
        digest_take(d, "", 1);
    }
    if (!strings && bytes)
        digest_take(d, at, (size_t)bytes);
    struct constant_digest found = digest_end(d);
    arena_free(tmp);
    return found;
}

void tensor_digest_put(struct arena *a, Onnx__TensorProto *t, struct constant_digest d)
{
    Onnx__StringStringEntryProto *e = NEW(a, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(e);
    e->key = arena_strdup(a, RANK_META_DIGEST);
    e->value = arena_strdup(a, digest_text(a, d));
    t->metadata_props = NEW(a, Onnx__StringStringEntryProto *);
    t->metadata_props[t->n_metadata_props++] = e;
}
