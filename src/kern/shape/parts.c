/* parts: Concat and Split. If the rows of all parts are short, blocks of rows are copied part by part: each block stays in the cache, while
 * whole parts would each read or write all of the whole's memory. */
#include "kern/core/core.h"

#include <string.h>

/* Parts of `whole` along an axis, as adjacent byte matrices. */
struct parts {
    struct kcall *call;
    struct tensor whole;
    int n, axis;
    const struct tensor *part;
    int64_t row, block; /* bytes per row of the whole, rows per block */
    bool out;           /* copies to the whole */
};

static int64_t part_row(const struct parts *p, const struct tensor *part)
{
    return part->dim[p->axis] * tensor_dims_product(part->dim, p->axis + 1, part->rank) * (int64_t)dtype_size(part->dtype);
}

/* Rows lo to hi of one part, from byte `at` of each row of the whole on. */
static void copy_block(const struct parts *p, const struct tensor *part, int64_t at, int64_t lo, int64_t hi)
{
    int64_t n = part_row(p, part);
    char *whole = (char *)p->whole.data + at + lo * p->row, *own = (char *)part->data + lo * n;
    if (p->out)
        copy_rows(hi - lo, (size_t)n, whole, p->row, own, n);
    else
        copy_rows(hi - lo, (size_t)n, own, n, whole, p->row);
}

static void copy_blocks(void *data, int64_t lo, int64_t hi)
{
    const struct parts *p = data;
    for (int64_t row = lo; row < hi; row += p->block) {
        int64_t end = hi - row < p->block ? hi : row + p->block, at = 0;
        for (int i = 0; i < p->n; at += part_row(p, &p->part[i]), i++)
            if (p->part[i].data)
                copy_block(p, &p->part[i], at, row, end);
    }
}

/* One part, along the axis from position start. */
static void copy_part(const struct parts *p, const struct tensor *part, int64_t start)
{
    struct copy c = {.rank = part->rank, .size = dtype_size(part->dtype)};
    int64_t mine[MAX_RANK], all[MAX_RANK];
    tensor_strides(part, mine);
    tensor_strides(&p->whole, all);
    memcpy(c.dim, part->dim, (size_t)part->rank * sizeof *c.dim);
    memcpy(c.to, p->out ? all : mine, sizeof mine);
    memcpy(c.from, p->out ? mine : all, sizeof mine);
    void *inside = element_at(p->whole.data, c.size, start * all[p->axis]);
    copy_strided(p->call->env, &c, p->out ? inside : part->data, p->out ? part->data : inside);
}

/* Many dense rows, whose pieces are short on average. */
static bool has_short_rows(const struct parts *p, int64_t rows)
{
    enum { SHORT = 4096 };
    bool dense = !p->whole.room;
    for (int i = 0; i < p->n; i++)
        dense = dense && !p->part[i].room;
    return dense && p->n > 1 && rows > 1 && p->row > 0 && p->row / p->n <= SHORT;
}

static void copy_parts(struct parts *p)
{
    enum { BLOCK = 1 << 16 };
    const struct tensor *whole = &p->whole;
    int64_t rows = tensor_dims_product(whole->dim, 0, p->axis), start = 0;
    p->row = part_row(p, whole);
    for (int i = 0; i < p->n; start += p->part[i].dim[p->axis], i++) {
        if (p->part[i].rank != whole->rank)
            fail("%s: part %d has rank %d where the whole has %d", kcall_where(p->call), i, p->part[i].rank, whole->rank);
        require(start + p->part[i].dim[p->axis] <= whole->dim[p->axis]);
    }
    if (has_short_rows(p, rows)) {
        p->block = p->row < BLOCK ? BLOCK / p->row : 1;
        kenv_parallel_for(p->call->env, rows, p->row, copy_blocks, p);
        return;
    }
    start = 0;
    for (int i = 0; i < p->n; start += p->part[i].dim[p->axis], i++)
        if (p->part[i].data)
            copy_part(p, &p->part[i], start);
}

void kern_Concat(struct kcall *call)
{
    struct parts p = {.call = call, .whole = call->out[0], .n = call->nin, .part = call->in, .out = true};
    p.axis = kcall_axis(call, attr_int(call->node, "axis"), p.whole.rank);
    copy_parts(&p);
}

/* Nothing to do: readers get the memory as the Appends leave it. */
void kern_Room(struct kcall *call)
{
    (void)call;
}

void kern_Append(struct kcall *call)
{
    struct parts p = {.call = call, .whole = call->out[0], .n = call->nin - 1, .part = call->in + 1, .out = true};
    int64_t start = attr_int(call->node, "start");
    p.axis = kcall_axis(call, attr_int(call->node, "axis"), p.whole.rank);
    for (int i = 0; i < p.n; start += p.part[i].dim[p.axis], i++)
        copy_part(&p, &p.part[i], start);
    require(start == p.whole.dim[p.axis]);
}

void kern_Split(struct kcall *call)
{
    struct parts p = {.call = call, .whole = call->in[0], .n = call->nout, .part = call->out};
    p.axis = kcall_axis(call, attr_int(call->node, "axis"), p.whole.rank);
    copy_parts(&p);
}
