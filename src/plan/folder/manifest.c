/* manifest: what a folder holds of its source, written as manifest.json: the files of the folder with their digests, and for every range of
 * the source's files that a tensor refers to, where the ranks keep it (struct scatter of ir.h). For --merge and for sharding the
 * folder again; never read at run time.
 *
 * A value of the rank graphs keeps a range if the ranks' parts of it cover it. Of several values that do, the first counts; where
 * ranks overlap, the lowest. What no value keeps is appended to the data of rank 0. */
#include "plan/facts/facts.h"
#include "plan/folder/folder.h"
#include "plan/input/input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One value's way of keeping a span. */
struct keeper {
    const char *value;
    int first; /* rank of the stage: another may split the same weight otherwise */
    int span;
    struct scatter scatter;
    VEC(struct strip) strips;
};
struct listed_span {
    const char *file;
    struct written written;
};
struct manifest {
    struct arena *arena;
    struct spans spans;   /* sorted, each once */
    struct scatter *kept; /* by span; at NULL: no rank has it */
    VEC(struct keeper) keepers;
    VEC(struct listed_span) files;
    int next; /* the keeper after the last one named: every rank has them in about the same order */
};

/* ---- spans ---- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_places(const struct source *a, const struct source *b)
{
    int order = compare_numbers(a->offset, b->offset);
    return order ? order : compare_numbers(a->length, b->length);
}

int manifest_order(const struct span *a, const struct span *b)
{
    int order = strcmp(a->file, b->file);
    return order ? order : compare_places(&a->source, &b->source);
}

static int compare_spans(const void *a, const void *b)
{
    return manifest_order(a, b);
}

struct manifest *manifest_new(struct arena *arena, struct spans spans)
{
    struct manifest *m = NEW(arena, struct manifest);
    *m = (struct manifest){.arena = arena};
    struct span *sorted = NEWN(arena, struct span, spans.n + 1);
    if (spans.n)
        memcpy(sorted, spans.at, (size_t)spans.n * sizeof *sorted);
    qsort(sorted, (size_t)spans.n, sizeof *sorted, compare_spans);
    for (int i = 0; i < spans.n; i++)
        if (i == 0 || manifest_order(&sorted[i - 1], &sorted[i]) != 0)
            VEC_PUSH(arena, &m->spans, sorted[i]);
    m->kept = NEWN(arena, struct scatter, m->spans.n + 1);
    return m;
}

/* The first span of the group that begins at from and ends before to which is not below s. */
static int lower_bound(const struct manifest *m, int from, int to, const struct source *s)
{
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (compare_places(&m->spans.at[middle].source, s) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static int end_of_file(const struct manifest *m, int from)
{
    int to = from;
    while (to < m->spans.n && strcmp(m->spans.at[to].file, m->spans.at[from].file) == 0)
        to++;
    return to;
}

/* Two names may lead to one file; a constant knows its path only. */
static int find_span(const struct manifest *m, const struct source *s)
{
    for (int from = 0, to; s->path && from < m->spans.n; from = to) {
        to = end_of_file(m, from);
        if (strcmp(m->spans.at[from].source.path, s->path) != 0)
            continue;
        int i = lower_bound(m, from, to, s);
        if (i < to && compare_places(&m->spans.at[i].source, s) == 0)
            return i;
    }
    return -1;
}

/* ---- who keeps them ---- */

static struct keeper *keeper_of(struct manifest *m, const struct value *v, int first, int span)
{
    for (int k = 0; k < m->keepers.n; k++) {
        int i = (m->next + k) % m->keepers.n;
        if (m->keepers.at[i].first == first && strcmp(m->keepers.at[i].value, v->name) == 0) {
            m->next = i + 1;
            return &m->keepers.at[i];
        }
    }
    VEC_PUSH(m->arena, &m->keepers, ((struct keeper){.value = v->name, .first = first, .span = span}));
    m->next = m->keepers.n;
    return &m->keepers.at[m->keepers.n - 1];
}

/* The rank's intervals are consecutive in a row of its part. */
static void add_strips(struct arena *a, struct keeper *k, const struct weight_layout *w, int rank, int64_t offset)
{
    int64_t width = 0, at = offset;
    require(offset >= 0 && w->size >= 0 && w->row >= 0);
    for (int i = 0; i < w->n; i++)
        width += (w->interval[i].hi - w->interval[i].lo) * w->row;
    for (int i = 0; i < w->n; i++) {
        VEC_PUSH(a, &k->strips, ((struct strip){w->interval[i].lo, w->interval[i].hi, rank, at, width}));
        at += (w->interval[i].hi - w->interval[i].lo) * w->row;
    }
    k->scatter.outer = w->outer;
    k->scatter.size = w->size;
    k->scatter.row = w->row;
}

void manifest_stored(struct manifest *m, const struct value *v, struct placement place, int first, int rank, int64_t offset)
{
    int span = find_span(m, &v->constant->source);
    require(rank >= first);
    if (span < 0 || v->constant->bytes == 0)
        return;
    struct weight_layout w = weight_layout(m->arena, v->constant, place, rank - first);
    add_strips(m->arena, keeper_of(m, v, first, span), &w, rank, offset);
}

static int compare_strips(const void *a, const void *b)
{
    const struct strip *x = a, *y = b;
    int order = compare_numbers(x->lo, y->lo);
    return order ? order : compare_numbers(x->file, y->file);
}

/* Each index once, of the first strip that has it; false: some index is in none. */
static bool make_cover(struct arena *a, struct keeper *k)
{
    VEC(struct strip) cover = {NULL, 0, 0};
    int64_t at = 0;
    qsort(k->strips.at, (size_t)k->strips.n, sizeof *k->strips.at, compare_strips);
    for (int i = 0; i < k->strips.n; i++) {
        struct strip s = k->strips.at[i];
        if (s.lo > at)
            return false;
        if (s.hi <= at)
            continue;
        s.offset += (at - s.lo) * k->scatter.row;
        s.lo = at;
        at = s.hi;
        VEC_PUSH(a, &cover, s);
    }
    k->scatter.n = cover.n;
    k->scatter.at = cover.at;
    return at == k->scatter.size;
}

static void choose_keepers(struct manifest *m)
{
    EACH (struct keeper, k, m->keepers) {
        require(k->span >= 0 && k->span < m->spans.n);
        require(k->scatter.outer * k->scatter.size * k->scatter.row == m->spans.at[k->span].source.length);
        if (!m->kept[k->span].at && make_cover(m->arena, k))
            m->kept[k->span] = k->scatter;
    }
}

void manifest_append_rest(struct manifest *m, struct out *data, int64_t (*place)(int64_t end, int64_t bytes))
{
    choose_keepers(m);
    for (int i = 0; i < m->spans.n; i++) {
        const struct span *s = &m->spans.at[i];
        if (m->kept[i].at || s->source.length == 0)
            continue;
        int64_t at = place(data->bytes, s->source.length);
        require(at >= data->bytes);
        out_pad(data, at);
        struct strip *whole = NEW(m->arena, struct strip);
        *whole = (struct strip){0, 1, 0, data->bytes, s->source.length};
        m->kept[i] = (struct scatter){.outer = 1, .size = 1, .row = s->source.length, .n = 1, .at = whole};
        source_stream(&s->source, s->file, 1, &(struct byte_range){0, s->source.length}, out_put, data);
        source_release(&s->source);
    }
}

void manifest_wrote(struct manifest *m, const char *file, struct written w)
{
    VEC_PUSH(m->arena, &m->files, ((struct listed_span){file, w}));
}

/* ---- the text: first the digest of all after it ---- */

static json_t *files_array(const struct manifest *m)
{
    json_t *all = json_array();
    EACH (const struct listed_span, f, m->files) {
        const char *digest = arena_printf(m->arena, "%016" PRIx64, f->written.digest);
        json_array_append_new(all, json_pack("{s:s,s:I,s:s}", "file", f->file, "bytes", (json_int_t)f->written.bytes, "xxh3", digest));
    }
    return all;
}

static json_t *strips_array(const struct scatter *x)
{
    json_t *all = json_array();
    for (int i = 0; i < x->n; i++) {
        const struct strip *s = &x->at[i];
        json_array_append_new(
            all, json_pack("[I,I,i,I,I]", (json_int_t)s->lo, (json_int_t)s->hi, s->file, (json_int_t)s->offset, (json_int_t)s->stride));
    }
    return all;
}

static json_t *source_array(const struct manifest *m)
{
    json_t *all = json_array();
    for (int i = 0; i < m->spans.n; i++) {
        const struct span *s = &m->spans.at[i];
        const struct scatter *x = &m->kept[i];
        json_t *o = json_pack("{s:s,s:I,s:I,s:I,s:I,s:o}", "file", s->file, "offset", (json_int_t)s->source.offset, "bytes",
                              (json_int_t)s->source.length, "outer", (json_int_t)x->outer, "size", (json_int_t)x->size, "strips",
                              strips_array(x));
        if (!o)
            fail("%s: the folder can't record the location of external data '%s', which is not UTF-8", s->source.path, s->file);
        json_array_append_new(all, o);
    }
    return all;
}

char *manifest_json(struct manifest *m, const char *plan_digest)
{
    json_t *root = json_pack("{s:i,s:s,s:o,s:o}", "version", MANIFEST_VERSION, "plan", plan_digest, "files", files_array(m), "source",
                             source_array(m));
    const char *rest = json_dump(m->arena, root, JSON_COMPACT) + 1; /* after the brace */
    json_decref(root);
    return arena_printf(m->arena, MANIFEST_HEAD "%016" PRIx64 "\",%s\n", digest_bytes(rest, strlen(rest)), rest);
}
