/* prefix: stores the columns of rows in blocks, also after the rows have ended. A row that starts with the same tokens reuses them.
 *
 * Ranks store the same blocks, each its own shards of their columns. */
#include "decode/prefix/prefix.h"

struct prefix {
    struct session *session;
    const struct session_columns *columns;
    struct prefix_pool *pool;
    int64_t block_bytes; /* in all */
    struct prefix_counts counts;
};

struct prefix *prefix_new(struct arena *a, struct comm *comm, struct session *s, const struct session_columns *columns, int64_t bytes)
{
    int64_t held = PREFIX_BLOCK * session_columns_bytes(columns), each = prefix_pool_block_bytes(PREFIX_BLOCK, held);
    int64_t own = bytes / each, most = own;
    comm->id = 0;
    comm->name = "blocks of prefixes";
    if (comm->size > 1)
        comm->allreduce(comm, &own, &most, 1, DT_I64, RED_MIN);
    if (most < 1)
        return NULL;
    struct prefix *p = NEW(a, struct prefix);
    *p = (struct prefix){.session = s, .columns = columns, .block_bytes = each, .counts = {.most = most}};
    p->pool = prefix_pool_new(PREFIX_BLOCK, held, most);
    return p;
}

void prefix_free(struct prefix *p)
{
    prefix_pool_free(p->pool);
}

int64_t prefix_find(struct prefix *p, int64_t adapter, const int64_t *token, int64_t n)
{
    return PREFIX_BLOCK * prefix_pool_find(p->pool, adapter, token, (n - 1) / PREFIX_BLOCK);
}

void prefix_take(struct prefix *p, int64_t adapter, const int64_t *token, int64_t n)
{
    int64_t blocks = n / PREFIX_BLOCK;
    if (prefix_pool_find(p->pool, adapter, token, blocks) != blocks)
        bug("a prefix of %lld tokens is stored on rank 0 and not on this one", (long long)n);
    session_columns_begin(p->columns, p->session, n);
    for (int64_t i = 0; i < blocks; i++)
        session_columns_write(p->columns, p->session, i * PREFIX_BLOCK, PREFIX_BLOCK, prefix_pool_at(p->pool, i));
    p->counts.hits++;
    p->counts.tokens += n;
}

void prefix_keep(struct prefix *p, int64_t adapter, const int64_t *token, int64_t n, int64_t row, int64_t column)
{
    void *to = n > 0 && n % PREFIX_BLOCK == 0 ? prefix_pool_add(p->pool, adapter, token, n / PREFIX_BLOCK) : NULL;
    if (to)
        session_columns_read(p->columns, p->session, row, column + n - PREFIX_BLOCK, PREFIX_BLOCK, to);
}

struct prefix_counts prefix_counts(const struct prefix *p)
{
    struct prefix_counts c = p->counts;
    c.blocks = prefix_pool_count(p->pool);
    c.dropped = prefix_pool_dropped(p->pool);
    c.bytes = c.blocks * p->block_bytes;
    return c;
}
