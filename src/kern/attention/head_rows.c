/* head_rows: rows of a head of keys or values, and how many heads of queries read them together. */
#include "kern/attention/attention.h"

const float *attention_widened(const struct head_rows *h, int64_t b, int64_t head, int64_t from, int64_t n, int64_t size, float *room,
                               int64_t *step)
{
    const void *rows = head_rows_at(h, b, head, from);
    *step = h->dtype == DT_F32 ? h->row : size;
    if (h->dtype == DT_F32)
        return rows;
    if (h->dtype == DT_I8)
        coded_rows_read(rows, h->row, n, size, room);
    else if (h->row == size)
        convert_to_f32(h->dtype, rows, n * size, room);
    else
        for (int64_t i = 0; i < n; i++)
            convert_to_f32(h->dtype, head_rows_at(h, b, head, from + i), size, room + i * size);
    return room;
}

int64_t attention_together(const struct attention_core *a, int threads)
{
    int64_t group = a->q_heads / a->kv_heads, parts = 1;
    while (parts < group && (group % parts || a->batch * a->kv_heads * parts < threads))
        parts++;
    return group / parts;
}
