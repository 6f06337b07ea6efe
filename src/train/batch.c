/* batch: the values of the graph's inputs. Row r of a step is drawn by its number alone, so it is the same however replicas and
 * microbatches divide the rows. With --data a row is a window of tokens; its labels are the tokens shifted by one. Masks hide padding,
 * positions count from 0. --input NAME=FILE.npy provides samples: the first dimension counts them, and all inputs draw the same sample. */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "onnx/onnx.h"
#include "train/train.h"

#include <string.h>

enum feed { FEED_NONE, FEED_SAMPLES, FEED_TOKENS, FEED_LABELS, FEED_MASK, FEED_POSITIONS };
struct fed {
    const char *name;
    enum feed feed;
    const struct type *type;
    struct tensor samples; /* the whole file */
    const char *path;
    int64_t rows;        /* of the table that tokens index; -1: unknown */
    struct buffer *room; /* by slot */
};
struct batches {
    struct arena *arena;
    const struct settings *settings;
    const char *path; /* of the graph */
    int n, slots;
    struct fed *fed;
    struct sources *sources; /* NULL: no files of tokens */
    int64_t samples;         /* to draw from: of the sources, or of --input */
    bool in_order;           /* in order, without drawing; windows do not overlap */
};

/* ---- what feeds an input ----------------------------------------------------------------------------------------------------- */

static int fed_index(const struct batches *b, const char *name, size_t n)
{
    for (int i = 0; i < b->n; i++)
        if (strlen(b->fed[i].name) == n && strncmp(b->fed[i].name, name, n) == 0)
            return i;
    return -1;
}

static void take_samples(struct batches *b, const struct graph *g, const char *text)
{
    const char *equal = strchr(text, '=');
    int i = equal ? fed_index(b, text, (size_t)(equal - text)) : -1;
    if (!equal)
        fail_usage("--input '%s': expected NAME=FILE", text);
    if (i < 0 && rank_meta_is_unread(g, arena_strndup(b->arena, text, (size_t)(equal - text))))
        return;
    if (i < 0)
        fail_usage("--input '%s': %s has no such input to feed", text, b->path);
    struct fed *f = &b->fed[i];
    f->samples = tensor_map_npy(equal + 1);
    f->path = equal + 1;
    if (f->samples.rank != f->type->rank || f->samples.dtype != f->type->dtype || f->samples.rank < 1 || f->samples.dim[0] < 1)
        fail("%s: has %d dimensions of %s, expected samples of '%s', %s", f->path, f->samples.rank, dtype_name(f->samples.dtype), f->name,
             type_str(b->arena, f->type));
    if (b->samples && b->samples != f->samples.dim[0])
        fail("%s: has %lld samples, expected %lld as the file before it", f->path, (long long)f->samples.dim[0], (long long)b->samples);
    b->samples = f->samples.dim[0];
    f->feed = FEED_SAMPLES;
}

static enum feed usual_feed(const struct graph *g, struct fed *f)
{
    bool mask = false;
    rank_meta_values(g, f->name, &f->rows, &mask);
    if (strcmp(f->name, "labels") == 0)
        return FEED_LABELS;
    if (strstr(f->name, "position"))
        return FEED_POSITIONS;
    if (mask || strstr(f->name, "mask"))
        return FEED_MASK;
    return strcmp(f->name, "input_ids") == 0 ? FEED_TOKENS : FEED_NONE;
}

/* With tokens; the only remaining integer input is the tokens, too. */
static void feed_tokens(struct batches *b, const struct graph *g)
{
    struct fed *left = NULL;
    int unknown = 0;
    bool found = false;
    for (int i = 0; i < b->n; i++) {
        struct fed *f = &b->fed[i];
        if (f->feed == FEED_NONE)
            f->feed = usual_feed(g, f);
        found = found || f->feed == FEED_TOKENS;
        if (f->feed == FEED_NONE && (f->type->dtype == DT_I64 || f->type->dtype == DT_I32) && f->type->rank == 2 && ++unknown)
            left = f;
    }
    if (!found && unknown == 1)
        left->feed = FEED_TOKENS;
}

static void check_length(const struct batches *b, struct graph *g, const struct fed *f)
{
    const struct dim *size = f->type->rank == 2 ? f->type->dim[1] : NULL;
    int64_t most = size && size->kind == DIM_SYM ? job_most_of(b->arena, g, size->name) : -1;
    if (most > 0 && b->settings->sequence > most)
        fail_usage("rows of %lld tokens are too long: %s has positions for %lld tokens, so --sequence is at most that",
                   (long long)b->settings->sequence, b->path, (long long)most);
}

static void check_fed(const struct batches *b, struct graph *g)
{
    for (int i = 0; i < b->n; i++) {
        const struct fed *f = &b->fed[i];
        if (f->feed == FEED_POSITIONS && f->rows > 1 && b->settings->sequence > f->rows)
            fail_usage("rows of %lld tokens are too long: input '%s' of %s has positions for %lld, so --sequence is at most that",
                       (long long)b->settings->sequence, f->name, b->path, (long long)f->rows);
        if (f->feed == FEED_TOKENS)
            check_length(b, g, f);
        if (b->fed[i].feed == FEED_NONE)
            fail_usage("%s: nothing feeds input '%s', %s: --data FILE gives tokens and labels, --input %s=FILE.npy samples of it", b->path,
                       b->fed[i].name, type_str(b->arena, b->fed[i].type), b->fed[i].name);
    }
}

static void take_tokens(struct batches *b, const struct batch_source *from, struct settings *s)
{
    b->sources = sources_read(b->arena, from, s);
    int64_t n = sources_samples(b->sources);
    if (b->samples && b->samples != n)
        fail("%s: has %lld samples, expected %lld as --input has", from->data.text.at[0], (long long)n, (long long)b->samples);
    b->samples = n;
}

struct batches *batch_new(struct arena *a, struct graph *g, const struct session *s, const struct job_options *job,
                          const struct batch_source *from, struct settings *settings)
{
    struct batches *b = NEW(a, struct batches);
    *b = (struct batches){.arena = a,
                          .settings = settings,
                          .path = job->paths.text.at[0],
                          .n = job_given_inputs(g),
                          .slots = from->slots,
                          .in_order = from->in_order};
    b->fed = NEWN(a, struct fed, b->n);
    for (int i = 0; i < b->n; i++)
        b->fed[i] = (struct fed){
            .name = g->inputs.at[i]->name, .type = session_input_type(s, i), .rows = -1, .room = NEWN(a, struct buffer, from->slots)};
    for (int i = 0; i < from->input.text.n; i++)
        take_samples(b, g, from->input.text.at[i]);
    if (from->data.text.n) {
        take_tokens(b, from, settings);
        feed_tokens(b, g);
    }
    check_fed(b, g);
    return b;
}

/* ---- filling ----------------------------------------------------------------------------------------------------------------- */

static int64_t checked_token(const struct token_file *t, const struct fed *f, int64_t at)
{
    int64_t token = data_token(t, at);
    if (f->rows > 0 && token >= f->rows)
        fail("%s: token %lld is %lld, and '%s' takes less than %lld", t->path, (long long)at, (long long)token, f->name,
             (long long)f->rows);
    return token;
}

/* Column `at` of a window that begins at token `from` of the file. Padding is token 0, masked and without a label. */
static double window_element(const struct token_file *t, const struct fed *f, int64_t from, int64_t at)
{
    int64_t token;
    switch (f->feed) {
    case FEED_TOKENS: token = checked_token(t, f, from + at); return token < 0 ? 0 : (double)token;
    case FEED_LABELS:
        token = checked_token(t, f, from + at + 1);
        return token < 0 || (t->silent && t->silent[from + at + 1]) ? -100 : (double)token;
    case FEED_MASK: return data_token(t, from + at) >= 0;
    case FEED_POSITIONS: return (double)at;
    case FEED_NONE:
    case FEED_SAMPLES: break;
    }
    bug("input '%s' is not fed from tokens", f->name);
}

/* Sizes: the last dimension runs along a window; other open ones count rows. */
static void size_window(const struct batches *b, const struct fed *f, int64_t rows, struct tensor *to)
{
    *to = (struct tensor){.dtype = f->type->dtype, .rank = f->type->rank};
    for (int d = 0; d < to->rank; d++)
        if (!dim_is_int(f->type->dim[d], &to->dim[d]))
            to->dim[d] = rows;
    if (to->rank > 0)
        to->dim[to->rank - 1] = b->settings->sequence;
}

static void give_room(const struct batches *b, struct fed *f, int slot, struct tensor *to)
{
    int64_t n;
    if (!type_sizes_product(to->dim, to->rank, &n) || n > INT32_MAX)
        fail("%s: input '%s' is too large for this batch", b->path, f->name);
    to->data = buffer_reserve(&f->room[slot], tensor_bytes(to));
}

static void fill_windows(const struct batches *b, struct fed *f, int slot, const int64_t *drawn, int64_t rows, struct tensor *to)
{
    int64_t columns = b->settings->sequence;
    size_window(b, f, rows, to);
    give_room(b, f, slot, to);
    int64_t n = tensor_elements(to);
    for (int64_t i = 0; i < n; i++) {
        int64_t from, sample = drawn[i / columns % rows];
        const struct token_file *t = sources_at(b->sources, sample, &from);
        tensor_put(to, i, window_element(t, f, from, i % columns));
    }
}

static void fill_samples(const struct batches *b, struct fed *f, int slot, const int64_t *drawn, int64_t rows, struct tensor *to)
{
    *to = f->samples;
    to->dim[0] = rows;
    give_room(b, f, slot, to);
    size_t bytes = tensor_bytes(to) / (size_t)rows;
    for (int64_t r = 0; r < rows; r++)
        memcpy((char *)to->data + (size_t)r * bytes, (const char *)f->samples.data + (size_t)drawn[r] * bytes, bytes);
}

void batch_free(struct batches *b)
{
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->slots; k++)
            buffer_free(&b->fed[i].room[k]);
}

int64_t batch_samples(const struct batches *b)
{
    return b->samples;
}

/* Number `number` of all rows. */
static int64_t draw(const struct batches *b, int64_t number)
{
    int64_t seed = b->settings->seed;
    return b->sources ? sources_draw(b->sources, seed, number) : data_draw(seed, number, b->samples);
}

void batch_fill(struct batches *b, int64_t step, struct replica_range rows, int slot, struct tensor *in)
{
    struct arena *tmp = arena_new();
    int64_t *drawn = NEWN(tmp, int64_t, rows.count);
    for (int64_t r = 0; r < rows.count; r++)
        drawn[r] = b->in_order ? rows.from + r : draw(b, step * b->settings->batch + rows.from + r);
    for (int i = 0; i < b->n; i++)
        if (b->fed[i].feed == FEED_SAMPLES)
            fill_samples(b, &b->fed[i], slot, drawn, rows.count, &in[i]);
        else
            fill_windows(b, &b->fed[i], slot, drawn, rows.count, &in[i]);
    arena_free(tmp);
}
