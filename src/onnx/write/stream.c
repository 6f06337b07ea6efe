/* The weights of several graphs into their data files, from mapped sources, range by range.
 *
 * The files are written in parallel: a thread takes the file with the least progress and writes its next weight. So each source is read
 * once and few tensors are in memory at a time, if the graphs have their weights in about the same order. */
#include "onnx/write/write.h"

#include <string.h>
#include <sys/stat.h>

enum { FILES = 32 }; /* written in parallel: each is open and has a buffer */

/* ---- one weight ---- */

static void check_ranges(const struct value *v, int n, const struct byte_range *range, int64_t bytes)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        const struct byte_range *r = &range[i];
        if (r->offset < 0 || r->bytes < 0 || r->offset > v->constant->bytes - r->bytes)
            bug("constant '%s': range outside its source", v->name);
        if (!i64_add(total, r->bytes, &total))
            bug("constant '%s': ranges overflow", v->name);
    }
    int64_t read = v->stored == DT_NONE ? bytes : bytes / (int64_t)dtype_size(v->stored) * (int64_t)dtype_size(v->constant->dtype);
    if (total != read)
        bug("constant '%s': ranges of %lld bytes, its type needs %lld", v->name, (long long)total, (long long)read);
}

/* In pieces, because the stored type is not its own. */
static void stream_half(const struct data_file *f, const struct value *v, struct byte_range range, byte_taker *take, void *data)
{
    uint16_t piece[TO_HALF_PIECE];
    for (int64_t at = 0; at < range.bytes; at += TO_HALF_PIECE * (int64_t)sizeof(float)) {
        int64_t n = to_half_piece(f->model, v, range.offset + at, range.bytes - at, piece);
        take(data, piece, (size_t)n * sizeof *piece);
    }
}

void stream_weight(const struct data_file *f, const struct saved_weight *w, byte_taker *take, void *data)
{
    struct arena *tmp = arena_new();
    const struct byte_range whole = {0, w->value->constant->bytes}, *range = &whole;
    int n = f->options->ranges ? f->options->ranges(f->options->data, tmp, w->value, &range) : 1;
    check_ranges(w->value, n, range, w->bytes);
    if (w->value->stored == DT_NONE)
        constant_stream(w->value->constant, w->value->name, n, range, take, data);
    else
        for (int i = 0; i < n; i++)
            stream_half(f, w->value, range[i], take, data);
    arena_free(tmp);
}

/* ---- files in parallel ---- */

struct writer {
    struct data_file *file;
    int next;  /* weight */
    bool busy; /* a thread is writing it */
    struct out out;
};
/* A run of zeros by its length, with its digest. Weights have few sizes. */
struct zeros {
    int64_t bytes;
    struct constant_digest digest;
};
struct writers {
    int n;
    struct writer of[FILES];
    struct arena *arena;
    VEC(struct zeros) zeros;
};

/* A weight can't overwrite the file it is read from. */
static void check_sources(const struct data_file *f, const char *path)
{
    struct stat target, source;
    const char *last = NULL;
    if (stat(path, &target))
        return;
    for (int i = 0; i < f->weights.n; i++) {
        const char *from = f->weights.at[i].value->constant->source.path;
        if (!from || from == last || stat(from, &source))
            continue;
        last = from;
        if (source.st_dev == target.st_dev && source.st_ino == target.st_ino)
            fail("%s: can't be written: it holds the weights that are read", path);
    }
}

static struct saved_weight *next_weight(const struct writer *w)
{
    return w->next < w->file->weights.n ? &w->file->weights.at[w->next] : NULL;
}

static struct constant *next_constant(const struct writer *w)
{
    const struct saved_weight *next = next_weight(w);
    return next ? next->value->constant : NULL;
}

static void open_weight(const struct saved_weight *w)
{
    constant_open(w->value->constant, w->value->name);
    if (w->value->stored != DT_NONE && !w->hole)
        (void)constant_data(w->value->constant, w->value->name);
}

static struct constant_digest zeros_digest(struct writers *all, int64_t bytes)
{
    for (int i = 0; i < all->zeros.n; i++)
        if (all->zeros.at[i].bytes == bytes)
            return all->zeros.at[i].digest;
    struct arena *tmp = arena_new();
    struct zeros z = {bytes, digest_of_zeros(tmp, bytes)};
    arena_free(tmp);
    VEC_PUSH(all->arena, &all->zeros, z);
    return z.digest;
}

/* The idle file with the least progress. */
static int take_file(void *writers)
{
    struct writers *all = writers;
    int least = BESIDE_NONE;
    for (int i = 0; i < all->n; i++) {
        const struct writer *w = &all->of[i];
        if (!w->busy && next_weight(w) && (least < 0 || w->next < all->of[least].next))
            least = i;
    }
    if (least >= 0) {
        struct saved_weight *weight = next_weight(&all->of[least]);
        open_weight(weight);
        if (weight->hole)
            weight->digest = zeros_digest(all, weight->bytes);
        all->of[least].busy = true;
    }
    return least;
}

static void write_weight(void *writers, int i)
{
    struct writer *w = &((struct writers *)writers)->of[i];
    struct saved_weight *weight = next_weight(w);
    out_pad(&w->out, weight->offset);
    if (weight->hole) {
        out_hole(&w->out, weight->bytes);
        return;
    }
    struct arena *tmp = arena_new();
    struct digester *digest = digest_new(tmp, weight->bytes);
    out_also(&w->out, digest_take, digest);
    stream_weight(w->file, weight, out_put, &w->out);
    out_also(&w->out, NULL, NULL);
    weight->digest = digest_end(digest);
    arena_free(tmp);
}

/* Releases a weight that no file needs now or next. A slower file maps it again. */
static void end_weight(void *writers, int i)
{
    struct writers *all = writers;
    struct writer *w = &all->of[i];
    struct constant *c = next_constant(w);
    progress_add(w->file->options->progress, next_weight(w)->bytes);
    constant_close(c);
    w->next++;
    w->busy = false;
    for (int k = 0; k < all->n; k++)
        if (next_constant(&all->of[k]) == c)
            return;
    constant_release(c);
}

/* Finds holes, and reserves disk space for the data between them. */
static void reserve(struct writer *w)
{
    int64_t from = 0, to = 0;
    for (int i = 0; i < w->file->weights.n; i++) {
        struct saved_weight *weight = &w->file->weights.at[i];
        weight->hole = constant_is_hole(weight->value->constant);
        if (weight->hole) {
            out_reserve(&w->out, from, to - from);
            from = weight->offset + weight->bytes;
        }
        to = weight->offset + weight->bytes;
    }
    out_reserve(&w->out, from, to - from);
}

static void close_file(struct writer *w)
{
    const struct save_options *o = w->file->options;
    if (o->finish)
        o->finish(o->data, &w->out);
    w->file->written = out_close(&w->out);
}

static void write_files(int n, struct data_file *const *files)
{
    static const struct beside work = {take_file, write_weight, end_weight};
    struct writers all = {.n = n, .arena = arena_new()};
    for (int i = 0; i < n; i++) {
        struct writer *w = &all.of[i];
        *w = (struct writer){.file = files[i]};
        check_sources(files[i], files[i]->options->data_path);
        out_open(&w->out, files[i]->options->data_path);
        reserve(w);
        if (n < cores_of_process())
            out_behind(&w->out);
    }
    beside(n < cores_of_process() ? n : cores_of_process(), &work, &all);
    for (int i = 0; i < n; i++)
        close_file(&all.of[i]);
    arena_free(all.arena);
}

void stream_files(int n, struct data_file *const *files)
{
    for (int i = 0; i < n; i += FILES)
        write_files(n - i < FILES ? n - i : FILES, files + i);
}
