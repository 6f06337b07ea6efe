/* run: runs several tokens after the cache, and picks the model's token at each of them. */
#include "decode/draft/draft.h"

static void add_drafts(struct history *h, int64_t k, const int64_t *draft)
{
    for (int64_t i = 0; i < k; i++, h->length++)
        for (int64_t b = 0; b < h->batch; b++)
            history_put(h, b, draft[b * k + i], true);
}

void draft_run(struct stage *s, struct history *h, int64_t fed, const struct row_sampling *how, int64_t k, const int64_t *draft,
               int64_t *next, struct session_collective *count)
{
    require(h->length + k <= h->room);
    add_drafts(h, k, draft);
    h->scored = h->picked = k + 1;
    stage_run(s, h, fed);
    pick_next(s, h, how, next, count);
    pick_wait(s, h->batch * h->picked, next);
    h->scored = h->picked = 1;
    h->length -= k;
}
