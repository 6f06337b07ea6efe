/* The ONNX file in a folder of a model: Hugging Face has it in onnx/, exporters beside its config. */
#include "cli/shard.h"

#include <dirent.h>
#include <string.h>

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

struct found {
    const char *model; /* the first in the order of names */
    int models;
    const char *list;
    bool weights; /* files of weights without a graph */
};

static void look_in(struct arena *a, const char *dir, struct found *f)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        f->weights = f->weights || ends_in(e->d_name, ".safetensors") || strcmp(e->d_name, "pytorch_model.bin") == 0;
        if (!ends_in(e->d_name, ".onnx"))
            continue;
        const char *path = path_join(a, dir, e->d_name);
        f->list = arena_printf(a, "%s%s%s", f->list, f->models++ ? ", " : "", path);
        if (!f->model || strcmp(path, f->model) < 0)
            f->model = path;
    }
    if (d)
        (void)closedir(d);
}

const char *find_model_in(struct arena *a, const char *dir)
{
    const char *inner = path_join(a, dir, "onnx"), *place[2] = {path_join(a, dir, "model.onnx"), path_join(a, inner, "model.onnx")};
    struct found f = {.list = ""};
    for (int i = 0; i < 2; i++)
        if (path_exists(place[i]))
            return place[i];
    look_in(a, dir, &f);
    look_in(a, inner, &f);
    if (f.models > 1)
        fail("%s: holds %d models, name one: %s", dir, f.models, f.list);
    if (!f.model && f.weights)
        fail("%s: holds weights and no ONNX file: 'optimum-cli export onnx --model %s %s.onnx' makes a folder with one", dir, dir, dir);
    if (!f.model)
        fail("%s: holds no ONNX file, and no manifest.json of tpc-shard", dir);
    return f.model;
}
