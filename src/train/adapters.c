/* adapters: training of low-rank adapters only (tpc-shard --train --lora). Their initial values come from the seed, or from a PEFT file.
 * --save then names a folder: the checkpoint, and the adapters in PEFT's form. */
#include "job/adapters/adapters.h"

#include "ir/rank_meta.h"
#include "plan/input/input.h"
#include "train/train.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECKPOINT_FILE "checkpoint.safetensors"

/* ---- initial values ---- */

/* The modules of all stages, from the names of their A. */
static struct lora_products modules_of(struct arena *a, const struct parameters *p)
{
    struct lora_products all = {{NULL, 0, 0}};
    EACH (const struct trained_weight, w, p->all) {
        size_t n = strlen(w->name), end = strlen(LORA_A);
        if (n > end && path_ends(w->name, LORA_A))
            VEC_PUSH(a, &all.list, ((struct lora_product){.module = arena_strndup(a, w->name, n - end), .rows = w->dim[0]}));
    }
    return all;
}

static const struct trained_weight *weight_named(const struct graph *g, const struct parameters *p, const char *name)
{
    EACH (const struct trained_weight, w, p->all) {
        if (strcmp(w->name, name) == 0)
            return w;
    }
    fail("%s: trains no '%s': not a folder that tpc-shard --train --lora made", graph_file(g), name);
}

struct start {
    struct arena *arena;
    const struct graph *graph;
    const struct replicas *replicas;
    struct session *session;
    struct parameters *parameters;
};

/* Does nothing for another stage's weight. */
static void put(const struct start *s, const struct trained_weight *w, const float *full)
{
    if (w->own < 0)
        return;
    struct arena *tmp = arena_new();
    const struct parameter *p = &s->parameters->at[w->own];
    if (p->local.dtype != DT_F32)
        fail("%s: adapter '%s' is %s, expected f32", graph_file(s->graph), w->name, dtype_name(p->local.dtype));
    parameters_take_shard(tmp, s->replicas, s->session, p, full, p->local.data);
    arena_free(tmp);
}

static void draw(const struct start *s, const struct trained_weight *p, int64_t seed)
{
    struct arena *tmp = arena_new();
    float *full = NEWN(tmp, float, p->dim[0] * p->dim[1]);
    lora_initial(p->name, (uint64_t)seed, p->dim[0], p->dim[1], full);
    put(s, p, full);
    arena_free(tmp);
}

static void take(const struct start *s, const struct adapters *from, const struct adapter *of, const char *module,
                 const struct trained_weight *a)
{
    struct arena *tmp = arena_new();
    const struct trained_weight *b = weight_named(s->graph, s->parameters, arena_printf(tmp, "%s" LORA_B, module));
    double factor = rank_meta_adapters(s->graph) / (double)a->dim[1];
    if (!of)
        fail("%s: lacks an adapter for '%s', which %s trains", from->path, module, graph_file(s->graph));
    adapter_check(from, of, graph_file(s->graph), a->dim[0], b->dim[1]);
    if (adapter_rank(of) != a->dim[1] || adapter_factor(from, of) != factor)
        fail("%s: '%s' has rank %lld and factor %g, expected rank %lld and factor %g, as %s was compiled (tpc-shard --lora RANK,ALPHA)",
             from->path, of->name[0], (long long)adapter_rank(of), adapter_factor(from, of), (long long)a->dim[1], factor,
             graph_file(s->graph));
    put(s, a, adapter_turned(tmp, of, 0));
    put(s, b, adapter_turned(tmp, of, 1));
    arena_free(tmp);
}

void train_adapters_start(struct arena *arena, const struct graph *g, const struct replicas *t, struct session *session, int64_t seed,
                          const char *path, struct parameters *p)
{
    const struct start s = {arena, g, t, session, p};
    struct lora_products modules = modules_of(arena, p);
    if (!path) {
        EACH (const struct lora_product, m, modules.list)
            draw(&s, weight_named(g, p, arena_printf(arena, "%s" LORA_A, m->module)), seed);
        return;
    }
    const struct adapters from = adapters_read(arena, path);
    const struct adapter **of = adapters_match(arena, &from, graph_file(g), &modules, NULL);
    for (int i = 0; i < modules.list.n; i++) {
        const char *module = modules.list.at[i].module;
        take(&s, &from, of[i], module, weight_named(g, p, arena_printf(arena, "%s" LORA_A, module)));
    }
}

/* ---- the folder of --save ---- */

const char *train_checkpoint_path(struct arena *a, const char *path, bool adapters)
{
    return path && (adapters || path_is_folder(path)) ? path_join(a, path, CHECKPOINT_FILE) : path;
}

void train_adapters_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && (errno != EEXIST || !path_is_folder(path)))
        fail("%s: a folder for adapters can't be made: %s", path, strerror(errno));
    struct arena *a = arena_new();
    if (path_exists(path_join(a, path, ADAPTERS_FILE)) && !path_exists(path_join(a, path, CHECKPOINT_FILE)))
        fail("%s holds adapters that no --save wrote, so they are not replaced: name another folder", path);
    arena_free(a);
}

void train_adapters_remove(const char *path)
{
    static const char *const file[] = {ADAPTERS_FILE, ADAPTERS_CONFIG, CHECKPOINT_FILE};
    struct arena *a = arena_new();
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        (void)unlink(path_join(a, path, file[i]));
    (void)rmdir(path);
    arena_free(a);
}

/* PEFT's configuration, without its version, because every version reads this. */
static char *config_text(struct arena *a, double alpha, const struct lora_products *modules, int64_t rank)
{
    json_t *on = json_array();
    EACH (const struct lora_product, m, modules->list)
        json_array_append_new(on, json_text_of(m->module));
    json_t *root = json_pack("{s:s, s:n, s:n, s:I, s:f, s:f, s:s, s:b, s:b, s:o}", "peft_type", "LORA", "task_type",
                             "base_model_name_or_path", "r", (json_int_t)rank, "lora_alpha", alpha, "lora_dropout", 0.0, "bias", "none",
                             "fan_in_fan_out", 0, "inference_mode", 1, "target_modules", on);
    char *text = json_dump(a, root, JSON_INDENT(2));
    json_decref(root);
    return text;
}

static void write_whole(struct arena *a, const char *path, const char *text)
{
    struct out out;
    out_open_whole(a, &out, path);
    out_put(&out, text, strlen(text));
    (void)out_close(&out);
}

static void put_turned(struct out *out, const struct tensor *t)
{
    struct arena *tmp = arena_new();
    float *line = NEWN(tmp, float, t->dim[0]);
    for (int64_t c = 0; c < t->dim[1]; c++) {
        for (int64_t r = 0; r < t->dim[0]; r++)
            memcpy(line + r, (const char *)t->data + (size_t)(r * t->dim[1] + c) * sizeof *line, sizeof *line);
        out_put(out, line, (size_t)t->dim[0] * sizeof *line);
    }
    arena_free(tmp);
}

void train_adapters_write(const char *path, const struct graph *g, const struct parameters *p)
{
    struct arena *a = arena_new();
    const struct safetensors *from = safetensors_read(a, train_checkpoint_path(a, path, true));
    struct lora_products modules = modules_of(a, p);
    const char **name = NEWN(a, const char *, p->all.n);
    struct tensor *turned = NEWN(a, struct tensor, p->all.n);
    const struct tensor **plain = NEWN(a, const struct tensor *, p->all.n);
    const struct named_text format = {"format", "pt"};
    struct out out;
    for (int i = 0; i < p->all.n; i++) {
        plain[i] = safetensors_find(from, p->all.at[i].name);
        require(plain[i] && plain[i]->rank == 2);
        name[i] = arena_printf(a, ADAPTERS_PREFIX "%s", p->all.at[i].name);
        turned[i] = (struct tensor){.dtype = DT_F32, .rank = 2, .dim = {plain[i]->dim[1], plain[i]->dim[0]}};
    }
    out_open_whole(a, &out, path_join(a, path, ADAPTERS_FILE));
    safetensors_begin(&out, p->all.n, name, turned, 1, &format);
    for (int i = 0; i < p->all.n; i++)
        put_turned(&out, plain[i]);
    safetensors_end(&out);
    (void)out_close(&out);
    int64_t rank = weight_named(g, p, arena_printf(a, "%s" LORA_A, modules.list.at[0].module))->dim[1];
    write_whole(a, path_join(a, path, ADAPTERS_CONFIG), config_text(a, rank_meta_adapters(g), &modules, rank));
    map_close(from->file);
    arena_free(a);
}
