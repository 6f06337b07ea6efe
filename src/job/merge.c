/* merge: restores the source model of an emitted folder (tpc-shard --merge). The model file is made from model.onnx and the weights in
 * the rank files; manifest.json holds its digest. External weights get files of their own again, at the same offsets; bytes that no
 * tensor uses are zero. Weights of a checkpoint of training take the places of the model's. All files are written under temporary names
 * and renamed at the end. */
#include "ir/text/text.h"
#include "job/job.h"
#include "onnx/onnx.h"
#include "plan/folder/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct target_file {
    const char *path;
    char *part;     /* what is written; NULL: nothing yet */
    struct map was; /* that, before weights of a checkpoint replace some of it */
};
struct merge_job {
    struct arena *arena;
    struct folder *folder;
    const char *out;
    bool force;
    struct progress progress;
    VEC(struct target_file) targets; /* the first is the model */
};

/* ---- where to write ---- */

static void remove_parts(void *data, int status)
{
    (void)status;
    const struct merge_job *m = data;
    for (int i = 0; i < m->targets.n; i++)
        if (m->targets.at[i].part)
            (void)unlink(m->targets.at[i].part);
}

/* Removes "." and empty components. A path that leaves the folder is a failure. */
static const char *plain_location(const struct merge_job *m, const char *location)
{
    const char *plain = "";
    if (*location == '/')
        fail("%s: its source has weights in %s, which --merge does not write: only files beside the model", m->folder->dir, location);
    for (const char *at = location; *at; at += strcspn(at, "/"), at += *at == '/') {
        size_t n = strcspn(at, "/");
        if (n == 2 && strncmp(at, "..", n) == 0)
            fail("%s: its source has weights in %s, which --merge does not write: only files beside the model", m->folder->dir, location);
        if (n && !(n == 1 && *at == '.'))
            plain = arena_printf(m->arena, "%s%s%.*s", plain, *plain ? "/" : "", (int)n, at);
    }
    return plain;
}

static struct target_file *target_for(struct merge_job *m, const char *path)
{
    for (int i = 0; i < m->targets.n; i++)
        if (strcmp(m->targets.at[i].path, path) == 0)
            return &m->targets.at[i];
    if (path_is_special(path))
        fail("%s is a device or a pipe, expected the name of a file", path);
    if (path_exists(path) && (!m->force || path_is_folder(path)))
        fail(path_is_folder(path) ? "%s is a folder, expected the name of a file"
                                  : "%s exists already: name another file with -o, or replace it with --force",
             path);
    VEC_PUSH(m->arena, &m->targets, ((struct target_file){.path = path}));
    return &m->targets.at[m->targets.n - 1];
}

static const char *path_of(struct merge_job *m, const struct span *s)
{
    return *s->file ? path_join(m->arena, path_dir(m->arena, m->out), plain_location(m, s->file)) : m->out;
}

/* Checks all names before anything is written. */
static void check_targets(struct merge_job *m)
{
    const char *real = path_real(m->arena, path_dir(m->arena, m->out));
    if (!real)
        fail("%s: can't be written: %s", m->out, strerror(errno));
    const char *own = path_real(m->arena, m->folder->dir);
    if (own && strcmp(real, own) == 0)
        fail("%s is in the folder that is merged: choose another place with -o", m->out);
    target_for(m, m->out);
    for (int i = 0; i < m->folder->spans.n; i++) {
        const struct span *s = &m->folder->spans.at[i];
        if (*s->file && target_for(m, path_of(m, s)) == m->targets.at)
            fail("%s: its source has weights in a file '%s': choose another name with -o", m->folder->dir, s->file);
    }
}

/* ---- writing ---- */

/* Whatever ends the program, a part is made if and only if it has a name. All lie beside the model: other folders are made at the end. */
static FILE *create_part(const struct merge_job *m, struct target_file *t)
{
    const char *own = arena_printf(m->arena, "%s.%d", m->out, (int)(t - m->targets.at));
    char *name;
    diag_hold();
    FILE *f = out_create_beside(m->arena, own, &name);
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

static void open_target(struct out *out, const char *path, FILE *file)
{
    out_open_created(out, path, file);
    if (beside_cores() > 1)
        out_behind(out);
}

static void restore_model(struct merge_job *m)
{
    const struct folder *f = m->folder;
    const struct load_options options = {.find = folder_find, .find_data = m->folder};
    struct out out;
    struct sink sink = {m, &out};
    open_target(&out, m->out, create_part(m, m->targets.at));
    out_reserve(&out, f->bytes);
    onnx_restore(path_join(m->arena, f->dir, "model.onnx"), &options, put, &sink);
    struct written w = out_close(&out);
    if (w.bytes == f->bytes && strcmp(arena_printf(m->arena, "%016" PRIx64, w.digest), f->digest) == 0)
        return;
    folder_check_data(f);
    fail("%s: does not give back %s: expected %" PRId64 " bytes with digest %s, found %" PRId64 " with %016" PRIx64, f->dir, f->file,
         f->bytes, f->digest, w.bytes, w.digest);
}

/* Spans are sorted by file and offset; a second name of the same file opens what the first one wrote. */
static void write_span(struct sink *to, const struct span *s)
{
    enum { LARGE = 1 << 18 };
    if (s->source.length >= LARGE && !out_reserve_in(to->out->file, s->source.offset, s->source.length))
        out_fail(to->out);
    out_seek(to->out, s->source.offset);
    source_stream(&s->source, s->file, 1, &(struct byte_range){0, s->source.length}, put, to);
    source_release(&s->source);
}

static int write_data_file(struct merge_job *m, int from)
{
    const struct folder *f = m->folder;
    const struct span *first = &f->spans.at[from];
    struct target_file *t = target_for(m, path_of(m, first));
    struct out out;
    struct sink sink = {m, &out};
    int to = from;
    open_target(&out, t->path, t->part ? fopen(t->part, "r+b") : create_part(m, t));
    for (; to < f->spans.n && strcmp(f->spans.at[to].file, first->file) == 0; to++)
        write_span(&sink, &f->spans.at[to]);
    (void)out_close(&out);
    return to;
}

/* ---- renaming ---- */

static void make_folders(const struct merge_job *m, const char *path)
{
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        const char *dir = arena_strndup(m->arena, path, (size_t)(slash - path));
        if (mkdir(dir, 0777) != 0 && errno != EEXIST)
            fail("%s: the folder cannot be made: %s", dir, strerror(errno));
    }
}

/* Renames the model last: if it exists, all files do. */
static void rename_all(struct merge_job *m)
{
    for (int i = m->targets.n - 1; i >= 0; i--) {
        const struct target_file *t = &m->targets.at[i];
        make_folders(m, t->path);
        if (rename(t->part, t->path) != 0)
            fail("%s: cannot be renamed to %s: %s", t->part, t->path, strerror(errno));
    }
}

/* ---- trained weights --------------------------------------------------------------------------------------------------------------- */

static struct target_file *made_target(struct merge_job *m, const char *file)
{
    const char *path = *file ? path_join(m->arena, path_dir(m->arena, m->out), plain_location(m, file)) : m->out;
    for (int i = 0; i < m->targets.n; i++)
        if (m->targets.at[i].part && strcmp(m->targets.at[i].path, path) == 0)
            return &m->targets.at[i];
    fail("%s: its source has weights in %s, which is not there", m->folder->dir, file);
}

/* What the bytes of a place become: a tensor of the checkpoint, or its transpose. */
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

/* Copies of a weight that the source has were trained as one (passes/import/gradient.c). */
static void add_copies(struct merge_job *m, const struct weight_places *places, const struct safetensors *from, struct replacements *all,
                       const struct replacement *r)
{
    if (r->by->rank != 2 || r->at->bytes < WEIGHT_BYTES)
        return;
    for (int i = 0; i < places->n; i++) {
        const struct weight_place *w = &places->at[i];
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
    struct weight_places places = onnx_weight_places(m->arena, m->targets.at->part);
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
    for (int i = 1; i < m->targets.n; i++)
        printf(", %s", m->targets.at[i].path);
    for (int i = 0; i < texts.text.n; i++)
        printf(", %s", texts.text.at[i]);
    printf("\n");
}

void job_merge(struct arena *a, const char *dir, const char *weights, const char *out, bool force)
{
    struct merge_job m = {.arena = a, .out = out, .force = force};
    m.folder = folder_read(a, dir, true);
    if (graph_text(a, path_join(a, dir, "model.onnx")))
        fail("%s: was made from a graph in text form: there is no ONNX model to restore", dir);
    check_targets(&m);
    const struct safetensors *from = weights ? safetensors_read(a, weights) : NULL;
    diag_on_failure(remove_parts, &m);
    progress_start(&m.progress, "merging", total_bytes(m.folder));
    restore_model(&m);
    for (int i = 0; i < m.folder->spans.n;)
        i = *m.folder->spans.at[i].file ? write_data_file(&m, i) : i + 1;
    progress_end(&m.progress);
    map_check_unchanged();
    folder_check_data(m.folder);
    if (from)
        replace_weights(&m, from);
    rename_all(&m);
    diag_forget(remove_parts, &m);
    tell_written(&m);
}
