/* weight: which bytes of a source tensor a rank holds. A split dimension seen in row-major order is: for every index of the dimensions
 * before it, the rank's intervals, each times the bytes of the dimensions behind it. Ranges that adjoin are merged, so a split of the
 * first dimension is one range and a column split is one range per row. Owned or not makes no difference: every holder gets a copy. */
#include "plan/plan.h"

struct ranges { VEC(struct byte_range) list; };

static int64_t product(const struct constant *c, int from, int to)
{
    int64_t n;
    require(sizes_product(c->dim + from, to - from, &n));
    return n;
}

static void add_range(struct arena *arena, struct ranges *r, int64_t offset, int64_t bytes)
{
    struct byte_range *last = r->list.n ? &r->list.at[r->list.n - 1] : NULL;
    if (bytes == 0)
        return;
    if (last && last->offset + last->bytes == offset)
        last->bytes += bytes;
    else
        VEC_PUSH(arena, &r->list, ((struct byte_range){offset, bytes}));
}

int weight_ranges(struct arena *arena, const struct constant *c, struct placement place, int rank, const struct byte_range **out)
{
    static const struct bindings none;
    struct ranges ranges = {{NULL, 0, 0}};
    struct interval whole = {0, 1}, *piece = &whole;
    int n = 1;
    int64_t outer = 1, size = 1, row = c->bytes;
    if (place.kind == PLACE_S) {
        n = split_pieces(arena, place.split, rank, false, &none, &piece);
        require(n >= 0 && place.dim < c->rank);
        size = c->dim[place.dim];
        outer = product(c, 0, place.dim);
        row = outer * size > 0 ? c->bytes / (outer * size) : 0;
        require(row * outer * size == c->bytes);
    }
    for (int64_t o = 0; o < outer && c->bytes > 0; o++)
        for (int i = 0; i < n; i++) {
            require(piece[i].lo >= 0 && piece[i].lo <= piece[i].hi && piece[i].hi <= size);
            add_range(arena, &ranges, (o * size + piece[i].lo) * row, (piece[i].hi - piece[i].lo) * row);
        }
    *out = ranges.list.at;
    return ranges.list.n;
}

int64_t weight_bytes(const struct value *v)
{
    int64_t elements = constant_elements(v->constant), n = 1, k;
    for (int d = 0; d < v->type.rank; d++)
        require(dim_is_int(v->type.dim[d], &k) && mul_i64(n, k, &n));
    int64_t each = v->stored == DT_NONE ? v->constant->bytes / (elements > 0 ? elements : 1) : (int64_t)dtype_size(v->stored);
    return elements > 0 ? each * n : 0;
}
