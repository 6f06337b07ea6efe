/* follow: a stage reads texts that others make. It keeps the columns in its caches. If a text changes, as after a rejected draft, or is
 * another text, the columns from there on are dropped. */
#include "decode/small/small.h"

#include <string.h>

struct follow follow_new(struct stage *s)
{
    struct follow f = {.stage = s, .count = {.name = "drafted tokens", .op = "AllGather"}};
    const char *node;
    (void)prompt_padding(s, &f.behind, &node);
    return f;
}

static void forget(struct follow *f)
{
    session_states_compose(f->stage->session, NULL, 0, 0, NULL);
    f->fed = 0;
}

/* ---- the columns of the texts ---- */

static void make_room(struct follow *f, const struct history *h, int64_t columns)
{
    struct arena *before = f->feed;
    const struct history old = f->own;
    if (before && old.batch == h->batch && old.room >= columns)
        return;
    if (old.batch != h->batch)
        forget(f);
    f->feed = arena_new();
    f->own = history_empty(f->feed, h->batch, 2 * columns);
    for (int64_t b = 0; b < h->batch && f->fed; b++) {
        int64_t to = b * f->own.room, from = b * old.room;
        memcpy(f->own.token + to, old.token + from, (size_t)f->fed * sizeof *old.token);
        memcpy(f->own.seen + to, old.seen + from, (size_t)f->fed * sizeof *old.seen);
        memcpy(f->own.position + to, old.position + from, (size_t)f->fed * sizeof *old.position);
    }
    history_reserve(f->feed, &f->own, f->stage);
    if (before)
        arena_free(before);
}

static bool same_column(const struct history *x, const struct history *y, int64_t c)
{
    for (int64_t b = 0; b < x->batch; b++) {
        int64_t i = b * x->room + c, k = b * y->room + c;
        if (x->token[i] != y->token[k] || x->seen[i] != y->seen[k] || x->position[i] != y->position[k])
            return false;
    }
    return true;
}

static void copy_columns(const struct history *from, struct history *to)
{
    for (int64_t b = 0; b < from->batch; b++)
        for (int64_t c = 0; c < from->length; c++) {
            int64_t i = b * to->room + c, k = b * from->room + c;
            to->token[i] = from->token[k];
            to->seen[i] = from->seen[k];
            to->position[i] = from->position[k];
        }
    memcpy(to->behind, from->behind, (size_t)from->batch * sizeof *to->behind);
    to->length = from->length;
}

void follow_rows(struct follow *f, const struct history *h, int64_t room)
{
    int64_t same = 0;
    make_room(f, h, h->length + room);
    while (same < f->fed && same < h->length - 1 && same_column(&f->own, h, same))
        same++;
    if (same < f->fed)
        session_states_cut(f->stage->session, same);
    f->fed = same;
    copy_columns(h, &f->own);
}

/* ---- runs ---- */

/* A new run starts after padding that follows a token of its row, because the keys of a row are counted. A single text runs in parts, like
 * its prompt. */
static int64_t end_of_part(const struct follow *f)
{
    const struct history *h = &f->own;
    for (int64_t b = 0; f->behind && b < h->batch; b++)
        for (int64_t c = f->fed + 1; c < h->length; c++)
            if (h->seen[b * h->room + c] && !h->seen[b * h->room + c - 1])
                return c;
    return h->batch == 1 && h->length - f->fed > PREFIX_BLOCK ? f->fed + PREFIX_BLOCK : h->length;
}

void follow_step(struct follow *f, const struct row_sampling *how, int64_t *next)
{
    struct history *h = &f->own;
    int64_t length = h->length;
    require(f->fed < length && length < h->room);
    while (f->fed < length) {
        h->length = length;
        h->length = end_of_part(f);
        stage_run(f->stage, h, f->fed);
        f->fed = h->length;
    }
    pick_next(f->stage, h, how, next, &f->count);
    history_add(h, next);
}

void follow_end(struct follow *f)
{
    if (f->feed)
        arena_free(f->feed);
    f->feed = NULL;
}
