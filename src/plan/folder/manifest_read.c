/* manifest_read: an emitted folder as a source: manifest.json read back (manifest.c). Nothing in the folder is trusted: every file must
 * have the bytes and the digest it was written with, every strip must be within its file, and strips must make up the range. */
#include "plan/folder/folder.h"
#include "plan/input/input.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { STRIP_NUMBERS = 5 };

struct manifest_reader {
    struct arena *arena;
    struct folder *folder;
    const char *path;
    int64_t *bytes; /* of each rank's data */
};

static int64_t manifest_number(const struct manifest_reader *r, const char *where, const json_t *v)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        fail("%s: %s: expected an integer of 0 or more, found %s", r->path, where, json_is_integer(v) ? "a negative one" : json_kind(v));
    return json_integer_value(v);
}

static int64_t member_number(const struct manifest_reader *r, const json_t *o, const char *key)
{
    return manifest_number(r, key, json_object_get(o, key));
}

static const char *member_text(const struct manifest_reader *r, const char *path, const json_t *o, const char *key)
{
    const char *text = json_text(r->arena, path, o, key);
    if (!text)
        fail("%s: lacks '%s'", path, key);
    return text;
}

static const json_t *member_array(const struct manifest_reader *r, const json_t *o, const char *key)
{
    const json_t *v = json_member(r->path, o, key, JSON_ARRAY);
    if (!v)
        fail("%s: lacks '%s'", r->path, key);
    return v;
}

/* ---- the plan ---- */

/* With --pp each stage has as many ranks. */
static int stages_of(const char *path, const json_t *root, int64_t ranks)
{
    const json_t *listed = json_object_get(root, "stages"), *number = json_object_get(root, "pp");
    int64_t stages = json_integer_value(number);
    if (!listed && !number)
        return 1;
    if (stages < 2 || stages > PLAN_RANKS / ranks)
        fail("%s: expected 2 to %" PRId64 " for 'pp', found %" PRId64, path, PLAN_RANKS / ranks, stages);
    if (!json_is_array(listed) || (int64_t)json_array_size(listed) != stages)
        fail("%s: expected a list of %" PRId64 " 'stages', found %zu", path, stages, json_array_size(listed));
    return (int)stages;
}

static void read_plan(struct manifest_reader *r)
{
    struct folder *f = r->folder;
    const char *path = path_join(r->arena, f->dir, "plan.json");
    json_t *root = json_read(path);
    const json_t *source = json_member(path, root, "source", JSON_OBJECT), *options = json_member(path, root, "options", JSON_OBJECT);
    int64_t ranks = json_integer_value(json_object_get(root, "tp"));
    if (ranks < 1 || ranks > PLAN_RANKS)
        fail("%s: expected 1 to %d for 'tp', found %" PRId64, path, PLAN_RANKS, ranks);
    f->ranks = (int)ranks * stages_of(path, root, ranks);
    f->file = member_text(r, path, source, "file");
    f->digest = member_text(r, path, source, "xxh3");
    f->bytes = json_integer_value(json_object_get(source, "bytes"));
    const char *weights = json_text(r->arena, path, options, "weights");
    if (weights)
        fail("%s: the weights were converted to %s, so the source's are not in the folder: use the source itself", f->dir, weights);
    json_decref(root);
}

/* ---- the files ---- */

static void check_size(const char *path, int64_t bytes)
{
    struct map m = map_file(path);
    map_close(m);
    if ((int64_t)m.bytes != bytes)
        fail("%s: has %zu bytes, expected %" PRId64 ": it is not the file that was written with this folder", path, m.bytes, bytes);
}

static void check_digest(const struct folder_file *f)
{
    struct written found;
    char text[17];
    bool read = digest_file_get(f->digest, &found);
    (void)snprintf(text, sizeof text, "%016" PRIx64, found.digest);
    if (!read || strcmp(text, f->expected) != 0)
        fail("%s: is not the file that was written with this folder: its digest is not %s", f->path, f->expected);
}

void folder_check_data(const struct folder *f)
{
    for (int i = 0; i < f->checked.n; i++)
        check_digest(&f->checked.at[i]);
}

/* Weights are large: they are read while other work is done. */
static void begin_check(const struct manifest_reader *r)
{
    const struct folder *f = r->folder;
    struct file_digest **digests = NEWN(r->arena, struct file_digest *, f->checked.n + 1);
    for (int i = 0; i < f->checked.n; i++)
        digests[i] = f->checked.at[i].digest;
    digest_files_begin(r->arena, f->checked.n, digests);
}

static void check_file(const struct manifest_reader *r, const char *name, const char *expected, int64_t bytes, bool later)
{
    const char *path = path_join(r->arena, r->folder->dir, name);
    struct folder_file f = {path, expected, digest_file(r->arena, path)};
    check_size(path, bytes);
    if (later)
        VEC_PUSH(r->arena, &r->folder->checked, f);
    else
        check_digest(&f);
}

/* plan.json, model.onnx and two per rank, in this order. */
static const char *expected_file(const struct manifest_reader *r, size_t i)
{
    require(i < 2 + 2 * (size_t)r->folder->ranks);
    if (i < 2)
        return i ? "model.onnx" : "plan.json";
    return arena_printf(r->arena, "rank-%zu.%s", (i - 2) / 2, i % 2 ? "data" : "onnx");
}

static void check_files(struct manifest_reader *r, const json_t *files, bool need_data)
{
    size_t n = json_array_size(files), expected = 2 + 2 * (size_t)r->folder->ranks;
    if (n != expected)
        fail("%s: lists %zu files, expected %zu for %d ranks", r->path, n, expected, r->folder->ranks);
    r->bytes = NEWN(r->arena, int64_t, r->folder->ranks);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(files, i);
        const char *file = member_text(r, r->path, o, "file"), *digest = member_text(r, r->path, o, "xxh3");
        int64_t bytes = member_number(r, o, "bytes");
        bool data = i >= 2 && i % 2;
        if (strcmp(file, expected_file(r, i)) != 0)
            fail("%s: lists file '%s', expected '%s'", r->path, file, expected_file(r, i));
        if (data)
            r->bytes[(i - 2) / 2] = bytes;
        if (need_data || !data)
            check_file(r, file, digest, bytes, data);
    }
    begin_check(r);
}

/* ---- where the source's bytes are ---- */

static bool strip_end(const struct scatter *x, const struct strip *s, int64_t *end)
{
    int64_t before, last;
    return i64_mul(x->outer - 1, s->stride, &before) && i64_mul(s->hi - s->lo, x->row, &last) && i64_add(before, last, end) &&
        i64_add(*end, s->offset, end);
}

static struct strip read_strip(const struct manifest_reader *r, const json_t *list, const struct scatter *x, int64_t from)
{
    int64_t n[STRIP_NUMBERS], end;
    if (json_array_size(list) != STRIP_NUMBERS)
        fail("%s: strips: expected %d numbers, found %zu", r->path, STRIP_NUMBERS, json_array_size(list));
    for (size_t i = 0; i < STRIP_NUMBERS; i++)
        n[i] = manifest_number(r, "strips", json_array_get(list, i));
    if (n[2] >= r->folder->ranks)
        fail("%s: strips: expected a rank below %d, found %" PRId64, r->path, r->folder->ranks, n[2]);
    struct strip s = {n[0], n[1], (int)n[2], n[3], n[4]};
    if (s.lo != from || s.hi <= s.lo || s.hi > x->size)
        fail("%s: strips: %" PRId64 " to %" PRId64 " does not continue %" PRId64 " of %" PRId64, r->path, s.lo, s.hi, from, x->size);
    if (!strip_end(x, &s, &end) || end > r->bytes[s.file])
        fail("%s: strips: one ends beyond the %" PRId64 " bytes of rank-%d.data", r->path, r->bytes[s.file], s.file);
    return s;
}

static struct scatter *read_scatter(const struct manifest_reader *r, const json_t *o, int64_t bytes)
{
    struct scatter *x = NEW(r->arena, struct scatter);
    const json_t *list = member_array(r, o, "strips");
    int64_t rows, at = 0;
    *x = (struct scatter){.outer = member_number(r, o, "outer"),
                          .size = member_number(r, o, "size"),
                          .n = (int)json_array_size(list),
                          .files = &r->folder->data,
                          .arena = r->arena};
    if (bytes == 0 && x->n == 0)
        return x;
    if (!i64_mul(x->outer, x->size, &rows) || rows == 0 || bytes % rows || bytes == 0)
        fail("%s: %" PRId64 " bytes are not %" PRId64 " times %" PRId64 " rows", r->path, bytes, x->outer, x->size);
    x->row = bytes / rows;
    struct strip *strips = NEWN(r->arena, struct strip, x->n);
    for (int i = 0; i < x->n; i++) {
        strips[i] = read_strip(r, json_array_get(list, (size_t)i), x, at);
        at = strips[i].hi;
    }
    if (at != x->size)
        fail("%s: strips end at %" PRId64 " of %" PRId64, r->path, at, x->size);
    x->at = strips;
    return x;
}

static void read_source(struct manifest_reader *r, const json_t *list)
{
    struct folder *f = r->folder;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        struct span span = {.file = member_text(r, r->path, o, "file"),
                            .source = {.offset = member_number(r, o, "offset"), .length = member_number(r, o, "bytes")}};
        span.source.path = path_join(r->arena, f->dir, *span.file ? arena_printf(r->arena, "./%s", span.file) : "model.onnx");
        span.source.scatter = read_scatter(r, o, span.source.length);
        if (f->spans.n && manifest_order(&f->spans.at[f->spans.n - 1], &span) >= 0)
            fail("%s: source: entry %zu is out of order", r->path, i);
        VEC_PUSH(r->arena, &f->spans, span);
    }
}

static void name_data(struct manifest_reader *r)
{
    struct folder *f = r->folder;
    require(f->ranks >= 1);
    const char **paths = NEWN(r->arena, const char *, f->ranks);
    for (int i = 0; i < f->ranks; i++)
        paths[i] = path_join(r->arena, f->dir, arena_printf(r->arena, "rank-%d.data", i));
    f->data = (struct source_files){f->ranks, paths, NEWN(r->arena, struct map, f->ranks)};
}

/* manifest.json itself: its digest comes first. */
static json_t *read_manifest(const struct manifest_reader *r)
{
    enum { HEAD = sizeof MANIFEST_HEAD - 1, DIGEST = 16, REST = HEAD + DIGEST + 2 };
    struct map m = map_file(r->path);
    size_t end = m.bytes && m.at[m.bytes - 1] == '\n' ? m.bytes - 1 : m.bytes;
    bool whole = end > REST && memcmp(m.at, MANIFEST_HEAD, HEAD) == 0;
    const char *digest = whole ? arena_printf(r->arena, "%016" PRIx64, digest_bytes(m.at + REST, end - REST)) : "";
    if (!whole || memcmp(m.at + HEAD, digest, DIGEST) != 0)
        fail("%s: is not as it was written: its digest is not the one at its beginning", r->path);
    json_t *root = json_parse(r->path, (const char *)m.at, m.bytes);
    map_close(m);
    return root;
}

struct folder *folder_read(struct arena *a, const char *dir, bool need_data)
{
    static const char *const keys[] = {"xxh3", "version", "plan", "files", "source", NULL};
    struct manifest_reader r = {.arena = a, .folder = NEW(a, struct folder)};
    r.folder->dir = dir;
    r.path = path_join(a, dir, "manifest.json");
    if (!path_exists(r.path))
        fail("%s: has no manifest.json: not a folder that tpc-shard wrote", dir);
    json_t *root = read_manifest(&r);
    json_known_keys(r.path, root, keys);
    if (member_number(&r, root, "version") != MANIFEST_VERSION)
        fail("%s: is of version %" PRId64 ", expected %d", r.path, member_number(&r, root, "version"), MANIFEST_VERSION);
    read_plan(&r);
    name_data(&r);
    check_files(&r, member_array(&r, root, "files"), need_data);
    read_source(&r, member_array(&r, root, "source"));
    json_decref(root);
    return r.folder;
}

bool folder_find(void *data, const char *file, int64_t offset, int64_t bytes, struct source *out)
{
    const struct folder *f = data;
    const struct span wanted = {.file = file, .source = {.offset = offset, .length = bytes}};
    int from = 0, to = f->spans.n;
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (manifest_order(&f->spans.at[middle], &wanted) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == f->spans.n || manifest_order(&f->spans.at[from], &wanted) != 0)
        return false;
    *out = f->spans.at[from].source;
    return true;
}
