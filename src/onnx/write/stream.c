/* The weights of several graphs into their data files, from mapped sources, range by range.
 *
 * The files are written side by side: while a tensor is mapped, every graph that holds it takes its ranges. So each source is read once,
 * and one tensor is in memory at a time, provided that the graphs have their weights in about the same order. */
#include "onnx/write/write.h"

#include <string.h>
#include <sys/stat.h>

enum {
    FILES = 32,                /* written side by side: each is open and has a buffer */
    WORTH_A_THREAD = 256 << 10 /* bytes of a weight */
};

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

/* A piece at a time, for the type that it is stored in is not its own. */
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

/* ---- files side by side ---- */

struct writer {
    struct data_file *file;
    int next;
    struct out out;
};

/* A weight can't be written over the file it is read from. */
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

static struct constant *next_constant(const struct writer *w)
{
    const struct data_file *f = w->file;
    return w->next < f->weights.n ? f->weights.at[w->next].value->constant : NULL;
}

/* ---- jobs: half of them write a weight, each to its file, the others compute its digests ---- */

struct jobs {
    int n;
    struct writer *of[FILES];
};

struct digests {
    struct out *out;
    struct digester *weight;
};

static void take_digests(void *data, const void *from, size_t bytes)
{
    enum { PIECE = 1 << 17 }; /* stays in the cache between both */
    const struct digests *d = data;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        out_digest(d->out, (const uint8_t *)from + at, n);
        digest_take(d->weight, (const uint8_t *)from + at, n);
    }
}

static void digest_weight(struct writer *w, struct saved_weight *weight)
{
    struct arena *tmp = arena_new();
    struct digests d = {&w->out, digest_new(tmp, weight->bytes)};
    out_digest_pad(&w->out, weight->offset);
    stream_weight(w->file, weight, take_digests, &d);
    weight->digest = digest_end(d.weight);
    arena_free(tmp);
}

static void do_job(void *jobs, int i)
{
    const struct jobs *j = jobs;
    struct writer *w = j->of[i % j->n];
    struct saved_weight *weight = &w->file->weights.at[w->next];
    if (i >= j->n) {
        digest_weight(w, weight);
        return;
    }
    out_write_pad(&w->out, weight->offset);
    stream_weight(w->file, weight, out_write, &w->out);
}

static void open_weight(const struct saved_weight *w)
{
    constant_open(w->value->constant, w->value->name);
    if (w->value->stored != DT_NONE)
        (void)constant_data(w->value->constant, w->value->name);
}

/* The next weight of the first file that has one, into all files where it is the next; false: none has one. */
static bool write_weight(int n, struct writer *w)
{
    struct jobs jobs = {.n = 0};
    for (int i = 0; i < n; i++)
        if (next_constant(&w[i]) && (!jobs.n || next_constant(&w[i]) == next_constant(jobs.of[0])))
            jobs.of[jobs.n++] = &w[i];
    if (!jobs.n)
        return false;
    struct constant *c = next_constant(jobs.of[0]);
    for (int i = 0; i < jobs.n; i++)
        open_weight(&jobs.of[i]->file->weights.at[jobs.of[i]->next]);
    beside(c->bytes < WORTH_A_THREAD ? 1 : beside_cores(), 2 * jobs.n, do_job, &jobs);
    for (int i = 0; i < jobs.n; i++)
        progress_add(jobs.of[i]->file->options->progress, jobs.of[i]->file->weights.at[jobs.of[i]->next++].bytes);
    constant_release(c);
    return true;
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
    struct writer writers[FILES];
    for (int i = 0; i < n; i++) {
        writers[i] = (struct writer){.file = files[i]};
        check_sources(files[i], files[i]->options->data_path);
        out_open(&writers[i].out, files[i]->options->data_path);
    }
    while (write_weight(n, writers)) {
    }
    for (int i = 0; i < n; i++)
        close_file(&writers[i]);
}

void stream_files(int n, struct data_file *const *files)
{
    for (int i = 0; i < n; i += FILES)
        write_files(n - i < FILES ? n - i : FILES, files + i);
}
