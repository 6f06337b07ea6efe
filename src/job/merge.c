/* merge: restores the source model of an emitted folder (tpc-shard --merge). The model file is made from model.onnx and the weights in the
 * rank files; manifest.json holds its digest. The source's external data goes to one file named after the model: a single file keeps its
 * offsets, several are concatenated. Bytes that no tensor uses are zero. Weights of a training checkpoint replace the model's. All files
 * are written under temporary names and renamed at the end. */
#include "ir/text/text.h"
#include "job/adapters/adapters.h"
#include "job/job.h"
#include "onnx/onnx.h"
#include "plan/folder/folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TARGET_MODEL, TARGET_DATA, TARGET_RESTORED, TARGETS }; /* restored: the source's model file, if the model names other data */
struct target_file {
    const char *path;
    char *part;     /* the temporary file; NULL: nothing so far */
    struct map was; /* the written file, before weights of a checkpoint replace some of it */
};
/* An external file of the source, and its offset in the data file. */
struct external_part {
    const char *name;
    struct relocated at;
};
struct merge_job {
    struct arena *arena;
    struct folder *folder;
    const char *out, *weights; /* weights: a checkpoint; NULL: none */
    bool force;
    struct progress progress;
    VEC(struct external_part) parts; /* none: the model contains everything */
    struct target_file target[TARGETS];
};

/* ---- what goes to the data file ---- */

/* Removes "." and empty components. */
static const char *plain_location(const struct merge_job *m, const char *location)
{
    const char *plain = *location == '/' ? "/" : "";
    for (const char *at = location; *at; at += strcspn(at, "/"), at += *at == '/') {
        size_t n = strcspn(at, "/");
        if (n && !(n == 1 && *at == '.'))
            plain = arena_printf(m->arena, "%s%s%.*s", plain, *plain && strcmp(plain, "/") != 0 ? "/" : "", (int)n, at);
    }
    return plain;
}

/* NULL: no such file. */
static struct external_part *part_named(const struct merge_job *m, const char *location)
{
    const char *name = plain_location(m, location);
    int at = NAMED_AT(m->parts.at, m->parts.n, name);
    return at < 0 ? NULL : &m->parts.at[at];
}

/* The first offset from base + bytes on at which any system can map a file. */
static int64_t place_behind(const struct merge_job *m, int64_t base, int64_t bytes)
{
    enum { ALIGN = 1 << 16 };
    if (!i64_add(base, bytes, &base) || base > INT64_MAX - ALIGN)
        fail("%s: its source has weights beyond what a file can hold", m->folder->dir);
    return (base + ALIGN - 1) / ALIGN * ALIGN;
}

static void find_parts(struct merge_job *m)
{
    int64_t base = 0;
    EACH (const struct span, s, m->folder->spans) {
        if (!*s->file)
            continue;
        if (!part_named(m, s->file))
            VEC_PUSH(m->arena, &m->parts, ((struct external_part){.name = plain_location(m, s->file)}));
        struct relocated *old = &part_named(m, s->file)->at;
        (void)place_behind(m, s->source.offset, s->source.length);
        old->end = s->source.offset + s->source.length > old->end ? s->source.offset + s->source.length : old->end;
    }
    for (int i = 0; i < m->parts.n; i++) {
        m->parts.at[i].at.base = base;
        base = place_behind(m, base, m->parts.at[i].at.end);
    }
}

/* Whether the model names other data than its source. */
static bool relocates(const struct merge_job *m)
{
    return m->parts.n > 1 || (m->parts.n == 1 && strcmp(m->parts.at[0].name, path_base(m->target[TARGET_DATA].path)) != 0);
}

static bool find_part(void *merge_job, const char *location, struct relocated *out)
{
    const struct external_part *p = part_named(merge_job, location);
    if (p)
        *out = p->at;
    return p != NULL;
}

/* ---- targets ---- */

static void remove_parts(void *data, int status)
{
    (void)status;
    const struct merge_job *m = data;
    for (int i = 0; i < TARGETS; i++)
        if (m->target[i].part)
            (void)unlink(m->target[i].part);
}

#define ELSEWHERE "name another file with -o"

/* A model in the target folder. */
struct neighbour {
    const struct merge_job *merge;
    const char *path;
};

static void check_location(void *neighbour, const char *location)
{
    const struct neighbour *n = neighbour;
    const char *weights = path_join(n->merge->arena, path_dir(n->merge->arena, n->path), location);
    const char *const written[] = {n->merge->target[TARGET_DATA].path, n->merge->out};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (path_same(weights, written[i]))
            fail("%s holds weights of %s: " ELSEWHERE, written[i], n->path);
}

/* No other model may have its weights in a file that is written. */
static void check_neighbours(const struct merge_job *m)
{
    const char *folder = path_dir(m->arena, m->out);
    DIR *d = opendir(folder);
    if (!d)
        fail("%s: can't be read: %s", folder, strerror(errno));
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        const struct neighbour n = {m, path_join(m->arena, folder, e->d_name)};
        if (path_ends(n.path, ".onnx") && path_exists(n.path) && !path_is_folder(n.path) && !path_is_special(n.path) &&
            !path_same(n.path, m->out))
            onnx_each_location(n.path, check_location, (void *)(uintptr_t)&n);
    }
    (void)closedir(d);
}

/* The source may only be replaced by itself. */
static void check_source(const struct merge_job *m)
{
    struct written found;
    bool same = (m->weights || m->parts.n) && digest_file_get(digest_file(m->arena, m->out), &found) && found.bytes == m->folder->bytes &&
        strcmp(arena_printf(m->arena, "%016" PRIx64, found.digest), m->folder->digest) == 0;
    if (same)
        fail("%s is the source of %s or a copy of it, so it is not replaced: " ELSEWHERE, m->out, m->folder->dir);
}

/* An existing file must be a model by its name, or empty. */
static void check_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && st.st_size > 0 && !path_ends(path, ".onnx"))
        fail("%s exists already and is no .onnx file, so it is not replaced: " ELSEWHERE, path);
}

static void check_file(const struct merge_job *m, const char *path)
{
    if (path_is_special(path) || path_is_folder(path))
        fail("%s is a %s, expected the name of a file", path, path_is_folder(path) ? "folder" : "device or a pipe");
    folder_keep(path);
    if (m->weights && path_same(path, m->weights))
        fail("%s is the checkpoint that is merged: " ELSEWHERE, path);
}

/* Checks all names before anything is written. */
static void check_targets(const struct merge_job *m)
{
    const char *data = m->target[TARGET_DATA].path, *folder = path_dir(m->arena, m->out);
    bool has_data = m->parts.n && path_exists(data);
    if (!path_exists(folder))
        fail("%s: can't be written: %s", m->out, strerror(errno));
    if (path_same(folder, m->folder->dir))
        fail("%s is in the folder that is merged: choose another place with -o", m->out);
    check_file(m, m->out);
    if (has_data)
        check_file(m, data);
    if (path_exists(m->out))
        check_source(m);
    if (has_data || path_exists(m->out))
        check_neighbours(m);
    check_kind(m->out);
    if (!m->force && (has_data || path_exists(m->out)))
        fail("%s exists already: " ELSEWHERE ", or replace %s with --force", path_exists(m->out) ? m->out : data,
             m->parts.n ? arena_printf(m->arena, "it and %s", path_exists(m->out) ? data : m->out) : "it");
}

/* ---- writing ---- */

/* However the program ends, a temporary file exists only if its name is recorded. */
static FILE *create_part(const struct merge_job *m, struct target_file *t)
{
    char *name;
    diag_hold();
    FILE *f = out_create_beside(m->arena, t->path, &name);
    t->part = f ? name : NULL;
    int why = errno;
    diag_release();
    if (!f)
        fail("%s: can't be written: %s", t->path, strerror(why));
    return f;
}

struct sink {
    struct merge_job *merge;
    struct out *out;
};

static void put(void *data, const void *from, size_t bytes)
{
    struct sink *s = data;
    out_put(s->out, from, bytes);
    progress_add(&s->merge->progress, (int64_t)bytes);
}

static void open_target(struct merge_job *m, int target, struct out *out)
{
    struct target_file *t = &m->target[target];
    out_open_created(out, t->path, create_part(m, t));
    if (cores_of_process() > 1)
        out_behind(out);
}

static void restore_model(struct merge_job *m, int target)
{
    const struct folder *f = m->folder;
    const struct load_options options = {.find = folder_find, .find_data = m->folder};
    struct out out;
    struct sink sink = {m, &out};
    open_target(m, target, &out);
    out_reserve(&out, 0, f->bytes);
    onnx_restore(path_join(m->arena, f->dir, "model.onnx"), &options, put, &sink);
    struct written w = out_close(&out);
    if (w.bytes == f->bytes && strcmp(arena_printf(m->arena, "%016" PRIx64, w.digest), f->digest) == 0)
        return;
    folder_check_data(f);
    fail("%s: does not give back %s: expected %" PRId64 " bytes with digest %s, found %" PRId64 " with %016" PRIx64, f->dir, f->file,
         f->bytes, f->digest, w.bytes, w.digest);
}

static void write_model(struct merge_job *m)
{
    const struct relocation to = {path_base(m->target[TARGET_DATA].path), find_part, m};
    struct out out;
    if (!relocates(m)) {
        restore_model(m, TARGET_MODEL);
        return;
    }
    restore_model(m, TARGET_RESTORED);
    open_target(m, TARGET_MODEL, &out);
    onnx_relocate(m->target[TARGET_RESTORED].part, &to, out_put, &out);
    (void)out_close(&out);
}

static void write_span(struct sink *to, const struct span *s, int64_t base)
{
    enum { LARGE = 1 << 18 };
    int64_t at = base + s->source.offset;
    if (s->source.length >= LARGE && !out_reserve_in(to->out->file, at, s->source.length))
        out_fail(to->out);
    out_seek(to->out, at);
    source_stream(&s->source, s->file, 1, &(struct byte_range){0, s->source.length}, put, to);
    source_release(&s->source);
}

static void write_data(struct merge_job *m)
{
    const struct folder *f = m->folder;
    struct out out;
    struct sink sink = {m, &out};
    if (!m->parts.n)
        return;
    open_target(m, TARGET_DATA, &out);
    for (int i = 0; i < f->spans.n; i++)
        if (*f->spans.at[i].file)
            write_span(&sink, &f->spans.at[i], part_named(m, f->spans.at[i].file)->at.base);
    (void)out_close(&out);
}

/* The model comes last, and a replaced one is removed first: however the program ends, an existing model has its own data. */
static void rename_all(struct merge_job *m)
{
    const struct target_file *restored = &m->target[TARGET_RESTORED];
    if (restored->part)
        (void)unlink(restored->part);
    if (m->target[TARGET_DATA].part && unlink(m->out) != 0 && errno != ENOENT)
        fail("%s: can't be replaced: %s", m->out, strerror(errno));
    for (int i = TARGET_DATA; i >= TARGET_MODEL; i--) {
        const struct target_file *t = &m->target[i];
        if (t->part && rename(t->part, t->path) != 0)
            fail("%s: cannot be renamed to %s: %s", t->part, t->path, strerror(errno));
    }
}

/* ---- trained weights --------------------------------------------------------------------------------------------------------------- */

/* file: as the written model names it. */
static struct target_file *made_target(struct merge_job *m, const char *file)
{
    struct target_file *t = &m->target[*file ? TARGET_DATA : TARGET_MODEL];
    if (!t->part || (*file && strcmp(plain_location(m, file), path_base(t->path)) != 0))
        fail("%s: its source has weights in %s, which is not there", m->folder->dir, file);
    return t;
}

/* The replacement of a range of bytes: a tensor of the checkpoint, or its transpose. */
struct replacement {
    const struct weight_place *at;
    const struct tensor *by;
    bool turned;
};
struct replacements {
    VEC(struct replacement) list;
};

/* The bytes that the source had there. */
static const uint8_t *old_bytes(struct merge_job *m, const struct weight_place *w)
{
    struct target_file *t = made_target(m, w->file);
    if (!t->was.at)
        t->was = map_file(t->part);
    if (w->offset < 0 || w->bytes < 0 || w->offset > (int64_t)t->was.bytes || w->bytes > (int64_t)t->was.bytes - w->offset)
        fail("%s: '%s' does not lie in it", t->path, w->name);
    return t->was.at + w->offset;
}

static const struct weight_place *place_named(struct merge_job *m, const struct weight_places *places, const struct safetensors *from,
                                              int i)
{
    const struct tensor *t = &from->tensor[i];
    const struct weight_place *w = places->at, *end = w + places->n;
    while (w < end && strcmp(w->name, from->name[i]))
        w++;
    if (w == end || !w->file)
        fail("%s: '%s' is no tensor of %s%s", from->path, from->name[i], m->folder->file,
             w == end ? "" : " whose bytes lie together (raw_data)");
    if (w->tensor.dtype != t->dtype || w->tensor.rank != t->rank || memcmp(w->tensor.dim, t->dim, (size_t)t->rank * sizeof *t->dim))
        fail("%s: '%s' has not the type and sizes that it has in %s", from->path, w->name, m->folder->file);
    return w;
}

/* Copies of a weight in the source were trained as one (passes/import/gradient.c). */
static void add_copies(struct merge_job *m, const struct weight_places *places, const struct safetensors *from, struct replacements *all,
                       const struct replacement *r)
{
    if (r->by->rank != 2 || r->at->bytes < WEIGHT_BYTES)
        return;
    EACH (const struct weight_place, w, *places) {
        if (!w->file || w->bytes != r->at->bytes || w->tensor.dtype != r->by->dtype || w->tensor.rank != 2 ||
            safetensors_find(from, w->name))
            continue;
        enum constant_copy kind = constant_copy_kind(old_bytes(m, r->at), r->by->dim, old_bytes(m, w), w->tensor.dim,
                                                     dtype_size(r->by->dtype));
        if (kind != CONSTANT_OTHER)
            VEC_PUSH(m->arena, &all->list, ((struct replacement){w, r->by, kind == CONSTANT_TRANSPOSED}));
    }
}

struct file {
    struct merge_job *merge;
    FILE *at;
    const char *path;
};

static _Noreturn void cannot(const struct file *f)
{
    fail("%s: can't be written: %s", f->path, strerror(errno));
}

static void put_weights(void *data, const void *from, size_t bytes)
{
    struct file *f = data;
    if (fwrite(from, 1, bytes, f->at) != bytes)
        cannot(f);
    progress_add(&f->merge->progress, (int64_t)bytes);
}

static void put_turned(struct file *f, const struct tensor *t)
{
    size_t size = dtype_size(t->dtype);
    int64_t rows = t->dim[0], columns = t->dim[1];
    struct arena *tmp = arena_new();
    char *line = arena_array(tmp, (size_t)rows, size);
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(line + (size_t)r * size, (const char *)t->data + (size_t)(r * columns + c) * size, size);
        put_weights(f, line, (size_t)rows * size);
    }
    arena_free(tmp);
}

static void write_replacement(struct merge_job *m, const struct replacement *r)
{
    const char *path = made_target(m, r->at->file)->part;
    struct file file = {.merge = m, .at = fopen(path, "r+b"), .path = path};
    if (!file.at || fseeko(file.at, (off_t)r->at->offset, SEEK_SET) != 0)
        cannot(&file);
    if (r->turned)
        put_turned(&file, r->by);
    else
        put_weights(&file, r->by->data, tensor_bytes(r->by));
    if (fclose(file.at) != 0)
        cannot(&file);
}

static void replace_weights(struct merge_job *m, const struct safetensors *from)
{
    struct weight_places places = onnx_weight_places(m->arena, m->target[TARGET_MODEL].part);
    struct replacements all = {{NULL, 0, 0}};
    for (int i = 0; i < from->n; i++) {
        if (strncmp(from->name[i], SAFETENSORS_STATE, strlen(SAFETENSORS_STATE)) == 0)
            continue;
        struct replacement r = {place_named(m, &places, from, i), &from->tensor[i], false};
        VEC_PUSH(m->arena, &all.list, r);
        add_copies(m, &places, from, &all, &r);
    }
    for (int i = 0; i < all.list.n; i++)
        write_replacement(m, &all.list.at[i]);
}

/* ---- adapters ---- */

struct merged_weights {
    struct merge_job *merge;
    struct weight_places places;
};

/* Other copies of the weight stay: a table of embeddings is not the product's. */
static void put_merged(void *merged_weights, const char *weight, const struct tensor *t)
{
    struct merged_weights *to = merged_weights;
    struct tensor tensor = *t;
    const struct safetensors one = {.path = to->merge->weights, .n = 1, .name = &weight, .tensor = &tensor};
    write_replacement(to->merge, &(struct replacement){place_named(to->merge, &to->places, &one, 0), &tensor, false});
}

/* The source graph as restored from the folder, as far as planning used it. */
static struct graph *source_graph(struct merge_job *m)
{
    const struct options options = {.folder = m->folder};
    struct compile c = {.arena = m->arena, .options = &options, .model_path = path_join(m->arena, m->folder->dir, "model.onnx")};
    pass_run(&c, "load", "canon", NULL);
    return c.graph;
}

static void merge_adapters(struct merge_job *m, const struct adapters *from)
{
    struct merged_weights to = {m, onnx_weight_places(m->arena, m->target[TARGET_MODEL].part)};
    adapters_merge(source_graph(m), from, put_merged, &to);
}

static bool holds_adapters(const char *path)
{
    return path_is_folder(path) || strcmp(path_base(path), ADAPTERS_FILE) == 0;
}

/* A checkpoint, or any file of weights. */
static const struct safetensors *read_weights(struct arena *a, const char *path)
{
    const struct safetensors *from = safetensors_read(a, path);
    const char *format = safetensors_text(from, "format");
    if (format && strncmp(format, "tpc ", 4) == 0)
        safetensors_check(from, SAFETENSORS_CHECKPOINT);
    else if (safetensors_text(from, "step"))
        diag_tell("%s: has no digest, so that its weights can't be checked: an older tpc-run wrote it", path);
    return from;
}

static int64_t total_bytes(const struct folder *f)
{
    int64_t total = f->bytes;
    for (int i = 0; i < f->spans.n; i++)
        if (*f->spans.at[i].file && !i64_add(total, f->spans.at[i].source.length, &total))
            break;
    return total;
}

static void tell_written(struct merge_job *m)
{
    struct text_list texts = folder_copy_texts(m->arena, path_join(m->arena, m->folder->dir, "model.onnx"), path_dir(m->arena, m->out));
    if (diag_is_quiet())
        return;
    printf("wrote %s", m->out);
    if (m->parts.n)
        printf(", %s", m->target[TARGET_DATA].path);
    for (int i = 0; i < texts.text.n; i++)
        printf(", %s", texts.text.at[i]);
    printf("\n");
}

void job_merge(struct arena *a, const char *dir, const char *weights, const char *out, bool force)
{
    struct merge_job m = {.arena = a, .out = path_followed(a, out), .weights = weights, .force = force};
    m.target[TARGET_MODEL].path = m.target[TARGET_RESTORED].path = m.out;
    m.target[TARGET_DATA].path = arena_printf(a, "%s.data", m.out);
    m.folder = folder_read(a, dir, true);
    if (graph_text(a, path_join(a, dir, "model.onnx")))
        fail("%s: was made from a graph in text form: there is no ONNX model to restore", dir);
    find_parts(&m);
    check_targets(&m);
    bool adapters = weights && holds_adapters(weights);
    const struct adapters adapted = adapters ? adapters_read(a, weights) : (struct adapters){0};
    const struct safetensors *from = weights && !adapters ? read_weights(a, weights) : NULL;
    diag_on_failure(remove_parts, &m);
    progress_start(&m.progress, "merging", total_bytes(m.folder));
    write_model(&m);
    write_data(&m);
    progress_end(&m.progress);
    map_check_unchanged();
    folder_check_data(m.folder);
    if (from)
        replace_weights(&m, from);
    if (adapters)
        merge_adapters(&m, &adapted);
    rename_all(&m);
    diag_forget(remove_parts, &m);
    tell_written(&m);
}
