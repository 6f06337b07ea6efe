/* Sequences and optionals of ONNX's test data: lists of tensors. */
#include "onnx/onnx-data.pb-c.h"
#include "onnx/read/read.h"

#include <string.h>

static const char what[] = "a SequenceProto or OptionalProto file";

/* Such a file begins with its name, a TensorProto with a number. */
static bool begins_with_name(struct map file)
{
    if (file.bytes < 4 || file.at[0] != 0x0a)
        return false;
    size_t two = file.at[1] >= 0x80, length = two ? (file.at[1] & 0x7fu) | (size_t)file.at[2] << 7 : file.at[1], begin = 2 + two;
    return length > 0 && length <= file.bytes - begin && file.at[begin] >= ' ';
}

static void take_values(struct arena *arena, const Onnx__SequenceProto *s, const char *path, size_t most, struct tensor_list *list)
{
    list->n = (int)s->n_tensor_values;
    list->at = NEWN(arena, struct tensor, list->n + 1);
    for (int i = 0; i < list->n; i++)
        list->at[i] = tensor_of_proto(arena, s->tensor_values[i], path, arena_printf(arena, "element %d of '%s'", i, list->name), most);
}

struct tensor_list sequence_read_pb(struct arena *arena, const char *path)
{
    struct tensor_list list = {.name = NULL};
    struct arena *tmp = arena_new();
    struct map file = map_file(path);
    if (begins_with_name(file)) {
        wire_check(tmp, path, what, file, &onnx__sequence_proto__descriptor, NULL);
        const Onnx__SequenceProto *s = wire_unpack(tmp, path, what, file, &onnx__sequence_proto__descriptor);
        list.name = arena_strdup(arena, proto_text_or(s->name, ""));
        list.absent = s->elem_type == 0;
        take_values(arena, s->n_sequence_values == 1 ? s->sequence_values[0] : s, path, file.bytes, &list);
    }
    map_close(file);
    arena_free(tmp);
    return list;
}
