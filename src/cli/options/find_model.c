/* The ONNX files in a folder of a model: in onnx/ on Hugging Face, next to the config with exporters. */
#include "cli/options/args.h"

#include <dirent.h>
#include <string.h>

/* Optimum's names for the graphs of one model, in execution order. A decoder may exist both as two graphs and as one; the two are taken. */
static const char *const encoder = "encoder_model", *const decoder[] = {"decoder_model", "decoder_with_past_model"},
                         *const merged = "decoder_model_merged";

struct found {
    const char *model; /* the first by name */
    int models;
    const char *list;
    bool weights; /* weight files without a graph */
};

static void look_in(struct arena *a, const char *dir, struct found *f)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        f->weights = f->weights || path_ends(e->d_name, ".safetensors") || strcmp(e->d_name, "pytorch_model.bin") == 0;
        if (!path_ends(e->d_name, ".onnx"))
            continue;
        const char *path = path_join(a, dir, e->d_name);
        f->list = arena_printf(a, "%s%s%s", f->list, f->models++ ? ", " : "", path);
        if (!f->model || strcmp(path, f->model) < 0)
            f->model = path;
    }
    if (d)
        (void)closedir(d);
}

/* All rank files, or, if each host has only its own, one rank's. */
static bool holds_ranks(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool found = false;
    while (d && !found && (e = readdir(d))) {
        const char *number = e->d_name + 5;
        size_t digits = strncmp(e->d_name, "rank-", 5) == 0 ? strspn(number, "0123456789") : 0;
        found = strcmp(e->d_name, "manifest.json") == 0 || (digits && number[digits] == '.');
    }
    if (d)
        (void)closedir(d);
    return found;
}

/* A file NAME.onnx, or the folder NAME of its ranks; NULL: neither. */
static const char *graph_called(struct arena *a, const char *dir, const char *name)
{
    const char *file = path_join(a, dir, arena_printf(a, "%s.onnx", name)), *folder = path_join(a, dir, name);
    return path_exists(file) ? file : holds_ranks(folder) ? folder : NULL;
}

/* False: dir holds no such graphs, or too few to be a model. */
static bool several_graphs(struct arena *a, const char *dir, struct text_list *out)
{
    const char *first = graph_called(a, dir, encoder), *prefill = graph_called(a, dir, decoder[0]),
               *step = graph_called(a, dir, decoder[1]), *both = graph_called(a, dir, merged);
    if (first)
        VEC_PUSH(a, &out->text, first);
    if (prefill && step) {
        VEC_PUSH(a, &out->text, prefill);
        VEC_PUSH(a, &out->text, step);
    } else if (both || prefill) {
        VEC_PUSH(a, &out->text, both ? both : prefill);
    }
    return out->text.n > 1;
}

static const char *only_model(struct arena *a, const char *dir, const char *inner)
{
    const char *place[2] = {path_join(a, dir, "model.onnx"), path_join(a, inner, "model.onnx")};
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
        fail("%s: holds no ONNX file, and no rank files of tpc-shard", dir);
    return f.model;
}

struct text_list find_graphs(struct arena *a, const char *path)
{
    struct text_list out = {{NULL, 0, 0}};
    const char *inner = path_join(a, path, "onnx");
    if (!path_is_folder(path) || holds_ranks(path)) {
        VEC_PUSH(a, &out.text, path);
        return out;
    }
    if (!several_graphs(a, path, &out)) {
        out.text.n = 0;
        if (!several_graphs(a, inner, &out)) {
            out.text.n = 0;
            VEC_PUSH(a, &out.text, only_model(a, path, inner));
        }
    }
    return out;
}

void find_missing(struct arena *a, int rank, int of_folder, const struct text_list *paths)
{
    for (int i = 0; i < paths->text.n; i++) {
        const char *path = paths->text.at[i];
        bool folder = rank > 0 && !path_ends(path, ".onnx");
        if (!path_exists(path))
            fail("%s: no such file or folder%s", path, folder ? arena_printf(a, ": copy rank-%d.* there", of_folder) : "");
    }
}
