/* weight_bytes: the bytes of a source tensor that a rank holds. In row-major order these are, for every index of the dimensions before the
 * split one, the rank's intervals times the bytes of the dimensions after it. Adjacent ranges are merged, so a split of the first dimension
 * is one range and a column split is one range per row. Ranks with overlapping intervals each get a copy. */
#include "plan/facts/facts.h"
#include "plan/plan.h"

#include <string.h>

bool weight_converted(const struct options *o)
{
    return o->weights != DT_NONE && o->weights != DT_F32;
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
    require(bytes > 0 && offset >= 0);
    if (last && last->offset + last->bytes == offset)
        last->bytes += bytes;
    else
        VEC_PUSH(arena, &r->list, ((struct byte_range){offset, bytes}));
}

/* If elements share bytes: how many indices of a dimension make whole bytes. */
static int64_t indices_of_bytes(const struct constant *c, int dim)
{
    int64_t row = elements_between(c, dim + 1, c->rank), n = 1;
    for (; row * n * dtype_bits(c->dtype) % 8; n *= 2)
        ;
    return n;
}

static void count_bytes(struct weight_layout *w, int64_t each)
{
    require(w->size % each == 0);
    w->size /= each;
    for (int i = 0; i < w->n; i++) {
        require(w->interval[i].lo % each == 0 && w->interval[i].hi % each == 0);
        w->interval[i] = (struct interval){w->interval[i].lo / each, w->interval[i].hi / each};
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
    for (int i = 0; i < w.n; i++)
        require(w.interval[i].lo >= 0 && w.interval[i].lo <= w.interval[i].hi && w.interval[i].hi <= w.size);
    if (dtype_is_packed(c->dtype) && c->bytes > 0)
        count_bytes(&w, indices_of_bytes(c, place.dim));
    w.row = w.outer * w.size > 0 ? c->bytes / (w.outer * w.size) : 0;
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

struct part {
    struct placement place;
    int rank;
};

static void make_part(const struct made *m, const void *from, void *to)
{
    const struct part *p = m->how;
    const struct byte_range *range;
    struct arena *tmp = arena_new();
    char *end = to;
    for (int i = 0, n = weight_ranges(tmp, m->from, p->place, p->rank, &range); i < n; i++) {
        memcpy(end, (const char *)from + range[i].offset, (size_t)range[i].bytes);
        end += range[i].bytes;
    }
    arena_free(tmp);
}

static struct constant *constant_part(struct arena *arena, const struct value *v, int rank)
{
    struct constant *c = NEW(arena, struct constant);
    struct part *p = NEW(arena, struct part);
    *p = (struct part){v->place, rank};
    *c = (struct constant){.dtype = v->constant->dtype, .rank = v->constant->rank, .trained = v->constant->trained};
    int64_t n = 1;
    for (int d = 0; d < c->rank; d++)
        require(dim_is_int(v->type.dim[d], &c->dim[d]) && i64_mul(n, c->dim[d], &n));
    require(dtype_packed_bytes(c->dtype, n, &c->bytes));
    c->made = NEW(arena, struct made);
    *c->made = (struct made){.from = v->constant, .name = v->name, .make = make_part, .how = p, .arena = arena};
    return c;
}

static bool is_whole(const struct value *v)
{
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_equals(v->type.dim[d], v->constant->dim[d]))
            return false;
    return true;
}

void weight_cut(struct graph *g)
{
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (v->constant && v->place.kind == PLACE_S && !is_whole(v))
            v->constant = constant_part(g->arena, v, g->rank);
    }
}

bool weight_divides(const struct value *v, struct placement place)
{
    if (!dtype_is_packed(v->type.dtype) || !v->constant || place.kind == PLACE_R)
        return true;
    if (place.kind == PLACE_P || place.split->balanced)
        return false;
    int64_t each = indices_of_bytes(v->constant, place.dim);
    for (int r = 0; r < place.split->ranks; r++)
        for (int i = 0; i < place.split->count[r]; i++)
            if (place.split->list[r][i].lo % each || place.split->list[r][i].hi % each)
                return false;
    return v->constant->dim[place.dim] % each == 0;
}

int64_t weight_bytes(const struct value *v)
{
    int64_t n = 1, k, bytes;
    for (int d = 0; d < v->type.rank; d++)
        require(dim_is_int(v->type.dim[d], &k) && i64_mul(n, k, &n));
    require(dtype_packed_bytes(value_storage(v), n, &bytes));
    return bytes;
}
