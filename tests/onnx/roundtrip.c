/* Loads a model and writes it again: roundtrip [-i] MODEL OUT.onnx [OUT.data]. -i: only loads it, missing external data is no error.
 * pb2npy: roundtrip --tensor IN.pb OUT.npy; npy2npy: roundtrip --npy IN.npy OUT.npy. For the tests of src/onnx. */
#include "onnx/onnx.h"

#include <string.h>

static int convert(const char *mode, const char *in, const char *out)
{
    struct arena *arena = arena_new();
    const char *name = "";
    struct tensor t = strcmp(mode, "--tensor") == 0 ? tensor_read_pb(arena, in, &name) : tensor_read_npy(arena, in);
    tensor_write_npy(out, &t);
    printf("%s\n", name);
    arena_free(arena);
    return 0;
}

static int copy(bool need_data, const char *in, const char *out, const char *data)
{
    struct arena *arena = arena_new();
    struct alg *alg = alg_new(arena);
    struct load_options load = {.need_data = need_data};
    struct graph *g = onnx_load(arena, alg, in, &load);
    struct save_options save = {.data_path = data, .producer = "roundtrip"};
    struct saved saved = {.data = {0, 0}};
    if (need_data)
        onnx_save(1, &g, &out, &save, &saved);
    printf("%d nodes, %d inputs, %d outputs, %lld bytes of data\n", g->nodes.n, g->inputs.n, g->outputs.n, (long long)saved.data.bytes);
    arena_free(arena);
    return 0;
}

int main(int argc, char **argv)
{
    diag_setup("roundtrip", 0);
    if (argc == 4 && strncmp(argv[1], "--", 2) == 0)
        return convert(argv[1], argv[2], argv[3]);
    bool ignore = argc > 1 && strcmp(argv[1], "-i") == 0;
    int at = ignore ? 2 : 1;
    if (argc - at != 2 && argc - at != 3)
        fail_usage("roundtrip [-i] MODEL OUT.onnx [OUT.data]");
    return copy(!ignore, argv[at], argv[at + 1], argc - at == 3 ? argv[at + 2] : NULL);
}
