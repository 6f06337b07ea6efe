/* bitwise: bit operations on integers of any width, through int64 in blocks. A shift by more than the type's bits, or by a negative number,
 * gives 0, or -1 for a negative number shifted to the right. */
#include "kern/core/core.h"

#include <string.h>

typedef int64_t bits_fn(int64_t x, int64_t y, int width);
struct bits_call {
    const struct walk *walk;
    bits_fn *op;
    const struct tensor *x, *y;
    struct tensor *out;
};

#define BITS(name, expr)                                 \
    static int64_t name(int64_t x, int64_t y, int width) \
    {                                                    \
        return (void)width, expr;                        \
    }
BITS(bits_and, x &y)
BITS(bits_or, x | y)
BITS(bits_xor, x ^ y)

static int64_t shift_left(int64_t x, int64_t y, int width)
{
    return y < 0 || y >= width ? 0 : (int64_t)((uint64_t)x << y);
}

static int64_t shift_right(int64_t x, int64_t y, int width)
{
    bool beyond = y < 0 || y >= width;
    uint64_t moved = (x < 0 ? ~(uint64_t)x : (uint64_t)x) >> (beyond ? 63 : y);
    return (int64_t)(x < 0 ? ~moved : moved);
}

static int64_t shift_right_u64(int64_t x, int64_t y, int width)
{
    return y < 0 || y >= width ? 0 : (int64_t)((uint64_t)x >> y);
}

static void bits_row(void *data, const int64_t *offset, int64_t n)
{
    const struct bits_call *c = data;
    enum dtype t = c->out->dtype;
    size_t size = dtype_size(t);
    int64_t x[CHUNK], y[CHUNK], z[CHUNK], sx = c->walk->stride[1][c->walk->rank - 1], sy = c->walk->stride[2][c->walk->rank - 1];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        convert_to_i64(t, element_at_const(c->x->data, size, offset[1] + i * sx), sx ? m : 1, x);
        convert_to_i64(t, element_at_const(c->y->data, size, offset[2] + i * sy), sy ? m : 1, y);
        for (int64_t j = 0; j < m; j++)
            z[j] = c->op(x[j * sx], y[j * sy], (int)(8 * size));
        convert_from_i64(t, z, m, element_at(c->out->data, size, offset[0] + i));
    }
}

static void bits_kernel(struct kcall *call, bits_fn *op, const struct tensor *y)
{
    struct walk w;
    struct bits_call c = {&w, op, &call->in[0], y, &call->out[0]};
    enum dtype t = c.x->dtype;
    if (!dtype_size(t) || dtype_is_float(t) || t == DT_BOOL)
        kcall_bad_type(call, t);
    if (y->dtype != t)
        fail("%s: operands must have one type, found %s and %s", kcall_where(call), dtype_name(t), dtype_name(y->dtype));
    walk_broadcast(call, &w, c.out, 2, (const struct tensor *[]){c.x, y});
    walk_run(call->env, &w, 4, bits_row, &c);
}

KERNEL_IS(BitwiseAnd, bits_kernel(call, bits_and, &call->in[1]))
KERNEL_IS(BitwiseOr, bits_kernel(call, bits_or, &call->in[1]))
KERNEL_IS(BitwiseXor, bits_kernel(call, bits_xor, &call->in[1]))

/* XOR of x with all bits set. */
void kern_BitwiseNot(struct kcall *call)
{
    int64_t ones = -1;
    struct tensor all = {.dtype = call->in[0].dtype, .data = &ones};
    bits_kernel(call, bits_xor, &all);
}

void kern_BitShift(struct kcall *call)
{
    const char *direction = attr_is_set(call->node, "direction") ? attr_string(call->node, "direction") : "";
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        fail("%s: attribute direction must be LEFT or RIGHT, not '%s'", kcall_where(call), direction);
    bits_kernel(call, left ? shift_left : call->in[0].dtype == DT_U64 ? shift_right_u64 : shift_right, &call->in[1]);
}
