/* A tensor file of any bytes: .npy where it begins as one, else a TensorProto. Every byte of what was read is looked at. */
#include "onnx/onnx.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

void fuzz_one(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    const char *name, *path = fuzz_file(arena, data, size);
    bool npy = size > 6 && memcmp(data, "\x93NUMPY", 6) == 0;
    struct tensor t = npy ? tensor_read_npy(arena, path) : tensor_read_pb(arena, path, &name);
    (void)fwrite(t.data, 1, tensor_bytes(&t), stdout);
    arena_free(arena);
}
