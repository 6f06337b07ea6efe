/* block_pool: assigns values, whose sizes become known one at a time, to blocks. A block is free again after the last step that needs its
 * content. The pool holds no memory, so its size can be computed before allocation. */
#include "base/base.h"

enum { LEAST = 64, LOOSE = 4, PAGE = 4096 };

/* It is larger than this many times the content, and than a page. */
static bool is_loose(size_t block, size_t bytes)
{
    return block > PAGE && (block - PAGE) / LOOSE > bytes;
}

/* Of two free blocks: the smaller one that is large enough, else the larger one. */
static bool suits_better(size_t a, size_t b, size_t bytes)
{
    return a >= bytes ? b < bytes || a < b : b < bytes && a > b;
}

static int best_block(const struct block_pool *p, size_t bytes)
{
    int best = -1;
    for (int i = 0; i < p->blocks.n; i++) {
        const struct pooled_block *b = &p->blocks.at[i];
        if (!b->used && !is_loose(b->bytes, bytes) && (best < 0 || suits_better(b->bytes, p->blocks.at[best].bytes, bytes)))
            best = i;
    }
    return best;
}

int block_pool_take(struct arena *a, struct block_pool *p, size_t bytes, int last)
{
    size_t need = bytes < LEAST ? LEAST : bytes;
    int i = best_block(p, need);
    if (i < 0) {
        i = p->blocks.n;
        VEC_PUSH(a, &p->blocks, ((struct pooled_block){.bytes = need}));
    }
    struct pooled_block *b = &p->blocks.at[i];
    if (b->bytes < need)
        b->bytes = need < SIZE_MAX / 2 ? need + need / 4 : need; /* what grew once is likely to grow again */
    b->used = true;
    b->last = last;
    return i;
}

void block_pool_release(struct block_pool *p, int step)
{
    for (int i = 0; i < p->blocks.n; i++)
        p->blocks.at[i].used = p->blocks.at[i].used && p->blocks.at[i].last > step;
}

int64_t block_pool_bytes(const struct block_pool *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->blocks.n; i++)
        bytes += (int64_t)p->blocks.at[i].bytes;
    return bytes;
}
