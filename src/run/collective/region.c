/* region: boxes of dense tensors: copies between a tensor and packed rows, which two lists of intervals name. */
#include "run/collective/collective.h"

#include <string.h>

int64_t region_bytes(const struct region *r)
{
    int64_t rows = r->outer * r->mid, bytes;
    if (!i64_mul(rows, intervals_extent(&r->list[0]), &bytes) || !i64_mul(bytes, intervals_extent(&r->list[1]), &bytes) ||
        !i64_mul(bytes, r->inner, &bytes))
        fail("a block of a collective is too large");
    return bytes;
}

/* Copies one row of the outermost axes: list 0 x mid x list 1. Returns the next block position. */
static char *copy_row(const struct region *r, char *row, char *block, bool pack)
{
    int64_t line = r->extent[1] * r->inner;
    for (int i = 0; i < r->list[0].n; i++)
        for (int64_t x = r->list[0].at[i].lo; x < r->list[0].at[i].hi; x++)
            for (int64_t m = 0; m < r->mid; m++)
                for (int k = 0; k < r->list[1].n; k++) {
                    char *at = row + (x * r->mid + m) * line + r->list[1].at[k].lo * r->inner;
                    size_t bytes = (size_t)((r->list[1].at[k].hi - r->list[1].at[k].lo) * r->inner);
                    memcpy(pack ? block : at, pack ? at : block, bytes);
                    block += bytes;
                }
    return block;
}

static void copy_region(const struct region *r, char *tensor, char *block, bool pack)
{
    if (region_bytes(r) == 0)
        return;
    int64_t row = r->extent[0] * r->mid * r->extent[1] * r->inner;
    for (int64_t o = 0; o < r->outer; o++)
        block = copy_row(r, tensor + o * row, block, pack);
}

const void *region_stretch(const struct region *r, const void *tensor)
{
    if (r->list[0].n != 1 || r->list[1].n != 1)
        return NULL;
    struct interval x = r->list[0].at[0], y = r->list[1].at[0];
    int64_t rows = r->outer * (x.hi - x.lo) * r->mid;
    bool all_x = x.hi - x.lo == r->extent[0], all_y = y.hi - y.lo == r->extent[1];
    if ((!all_x && r->outer != 1) || (!all_y && rows != 1) || region_bytes(r) == 0)
        return NULL;
    return (const char *)tensor + (x.lo * r->mid * r->extent[1] + y.lo) * r->inner;
}

void region_pack(const struct region *r, const void *tensor, void *block)
{
    copy_region(r, (char *)(uintptr_t)tensor, block, true);
}

void region_unpack(const struct region *r, void *tensor, const void *block)
{
    copy_region(r, tensor, (char *)(uintptr_t)block, false);
}

static int64_t region_product(const struct tensor *t, int from, int to)
{
    int64_t n;
    if (!type_sizes_product(t->dim + from, to - from, &n))
        fail("a tensor of a collective is too large");
    return n;
}

struct region region_of(struct arena *a, const struct tensor *t, int axis, const struct intervals *list, int axis2,
                        const struct intervals *list2)
{
    int64_t size = (int64_t)dtype_size(t->dtype);
    if (axis2 < 0) {
        struct region r = {.outer = region_product(t, 0, axis),
                           .extent = {1, t->dim[axis]},
                           .mid = 1,
                           .inner = region_product(t, axis + 1, t->rank) * size};
        r.list[0] = intervals_range(a, 0, 1);
        r.list[1] = *list;
        return r;
    }
    bool swap = axis2 < axis;
    int x = swap ? axis2 : axis, y = swap ? axis : axis2;
    struct region r = {.outer = region_product(t, 0, x),
                       .extent = {t->dim[x], t->dim[y]},
                       .mid = region_product(t, x + 1, y),
                       .inner = region_product(t, y + 1, t->rank) * size};
    r.list[0] = swap ? *list2 : *list;
    r.list[1] = swap ? *list : *list2;
    return r;
}
