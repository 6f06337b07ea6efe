/* where: elements of one operand or the other, by a condition; any type, by its size. */
#include "kern/core/core.h"

#include <string.h>

struct where_call {
    const struct walk *walk;
    const uint8_t *condition;
    const struct tensor *x, *y;
    void *out;
    size_t size;
};

/* Both values are read before one is chosen, so that the loop has no branch. */
#define WHERE_LOOP(T, ic, ix, iy)        \
    LOOP for (int64_t i = 0; i < n; i++) \
    {                                    \
        T x = a[ix], y = b[iy];          \
        o[i] = c[ic] ? x : y;            \
    }
#define WHERE_ROW(T)                           \
    do {                                       \
        const T *a = px, *b = py;              \
        T *o = po;                             \
        if (sc && sx && sy)                    \
            WHERE_LOOP(T, i, i, i)             \
        else if (sc && sx)                     \
            WHERE_LOOP(T, i, i, 0)             \
        else if (sc && sy)                     \
            WHERE_LOOP(T, i, 0, i)             \
        else                                   \
            WHERE_LOOP(T, i *sc, i *sx, i *sy) \
    } while (0)

/* All of a row from one operand. */
#define COPY_ROW(T)                                              \
    do {                                                         \
        const T *from = *c ? px : py;                            \
        T *o = po;                                               \
        if (*c ? sx : sy)                                        \
            memcpy(o, from, (size_t)n * sizeof *o);              \
        else                                                     \
            LOOP for (int64_t i = 0; i < n; i++) o[i] = from[0]; \
    } while (0)

static bool copies_row(int64_t sc, int64_t sx, int64_t sy)
{
    return sc == 0 && (sx == 0 || sx == 1) && (sy == 0 || sy == 1);
}

static void where_row(void *data, const int64_t *offset, int64_t n)
{
    const struct where_call *w = data;
    int last = w->walk->rank - 1;
    int64_t sc = w->walk->stride[1][last], sx = w->walk->stride[2][last], sy = w->walk->stride[3][last];
    const uint8_t *c = w->condition + offset[1];
    const void *px = element_at_const(w->x->data, w->size, offset[2]), *py = element_at_const(w->y->data, w->size, offset[3]);
    void *po = element_at(w->out, w->size, offset[0]);
    if (copies_row(sc, sx, sy)) {
        switch (w->size) {
        case 1: COPY_ROW(uint8_t); return;
        case 2: COPY_ROW(uint16_t); return;
        case 4: COPY_ROW(uint32_t); return;
        default: COPY_ROW(uint64_t); return;
        }
    }
    switch (w->size) {
    case 1: WHERE_ROW(uint8_t); break;
    case 2: WHERE_ROW(uint16_t); break;
    case 4: WHERE_ROW(uint32_t); break;
    default: WHERE_ROW(uint64_t); break;
    }
}

void kern_Where(struct kcall *call)
{
    const struct tensor *in[3] = {&call->in[0], &call->in[1], &call->in[2]};
    struct walk w;
    struct where_call c = {&w, in[0]->data, in[1], in[2], call->out[0].data, dtype_size(call->out[0].dtype)};
    if (in[0]->dtype != DT_BOOL || in[1]->dtype != in[2]->dtype)
        fail("%s: expected bool and two operands of one type, found %s, %s and %s", kcall_where(call), dtype_name(in[0]->dtype),
             dtype_name(in[1]->dtype), dtype_name(in[2]->dtype));
    if (c.size == 0)
        kcall_bad_type(call, in[1]->dtype);
    walk_broadcast(call, &w, &call->out[0], 3, in);
    walk_run(call->env, &w, 2, where_row, &c);
}
