/* weight: which bytes of a source tensor a rank holds. A split dimension seen in row-major order is: for every index of the dimensions
 * before it, the rank's intervals, each times the bytes of the dimensions behind it. Ranges that adjoin are merged, so a split of the
 * first dimension is one range and a column split is one range per row. Owned or not makes no difference: every holder gets a copy. */
#include "plan/facts/facts.h"
#include "plan/plan.h"

bool weight_converted(const struct options *o)
{
    return o->weights == DT_F16 || o->weights == DT_BF16;
}

struct ranges {
    VEC(struct byte_range) list;
};

static int64_t elements_between(const struct constant *c, int from, int to)
{
    int64_t n;
    require(type_sizes_product(c->dim + from, to - from, &n));
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

/* Where an odd row of elements that share bytes is not a number of bytes, two indices are one. */
static void count_pairs(struct weight_layout *w)
{
    require(w->size % 2 == 0);
    w->size /= 2;
    for (int i = 0; i < w->n; i++) {
        require(w->interval[i].lo % 2 == 0 && w->interval[i].hi % 2 == 0);
        w->interval[i] = (struct interval){w->interval[i].lo / 2, w->interval[i].hi / 2};
    }
}

struct weight_layout weight_layout(struct arena *arena, const struct constant *c, struct placement place, int rank)
{
    static const struct bindings none;
    static struct interval whole = {0, 1};
    struct weight_layout w = {.outer = 1, .size = 1, .row = c->bytes, .n = 1, .interval = &whole};
    if (place.kind != PLACE_S)
        return w;
    w.n = split_pieces(arena, place.split, rank, false, &none, &w.interval);
    require(w.n >= 0 && place.dim < c->rank);
    w.size = c->dim[place.dim];
    w.outer = elements_between(c, 0, place.dim);
    w.row = w.outer * w.size > 0 ? c->bytes / (w.outer * w.size) : 0;
    for (int i = 0; i < w.n; i++)
        require(w.interval[i].lo >= 0 && w.interval[i].lo <= w.interval[i].hi && w.interval[i].hi <= w.size);
    if (dtype_is_packed(c->dtype) && elements_between(c, place.dim + 1, c->rank) % 2) {
        count_pairs(&w);
        w.row = elements_between(c, place.dim + 1, c->rank);
    }
    require(w.row * w.outer * w.size == c->bytes);
    return w;
}

int weight_ranges(struct arena *arena, const struct constant *c, struct placement place, int rank, const struct byte_range **out)
{
    struct ranges ranges = {{NULL, 0, 0}};
    struct weight_layout w = weight_layout(arena, c, place, rank);
    for (int64_t o = 0; o < w.outer && c->bytes > 0; o++)
        for (int i = 0; i < w.n; i++)
            add_range(arena, &ranges, (o * w.size + w.interval[i].lo) * w.row, (w.interval[i].hi - w.interval[i].lo) * w.row);
    *out = ranges.list.at;
    return ranges.list.n;
}

bool weight_divides(const struct value *v, struct placement place)
{
    int64_t row;
    if (!dtype_is_packed(v->type.dtype) || place.kind == PLACE_R)
        return true;
    if (place.kind == PLACE_P || !v->constant || place.split->balanced)
        return false;
    row = elements_between(v->constant, place.dim + 1, v->constant->rank);
    for (int r = 0; r < place.split->ranks && row % 2; r++)
        for (int i = 0; i < place.split->count[r]; i++)
            if (place.split->list[r][i].lo % 2 || place.split->list[r][i].hi % 2)
                return false;
    return row % 2 == 0 || v->constant->dim[place.dim] % 2 == 0;
}

int64_t weight_bytes(const struct value *v)
{
    int64_t n = 1, k, bytes;
    for (int d = 0; d < v->type.rank; d++)
        require(dim_is_int(v->type.dim[d], &k) && i64_mul(n, k, &n));
    require(dtype_bytes(value_storage(v), n, &bytes));
    return bytes;
}
