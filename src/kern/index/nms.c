/* nms: NonMaxSuppression. For each image and class, boxes in order of their scores; each is kept unless it overlaps a kept one too much. A
 * heap gives the order, sorted only as far as needed. */
#include "kern/core/core.h"
#include "kern/index/index.h"

#include <math.h>

struct box {
    float top, left, bottom, right, area;
    int64_t index;
};
struct scored {
    float score;
    int32_t index;
};
struct nms {
    const float *boxes, *scores;
    int64_t images, classes, n, most;
    float overlap, least;
    bool centre;
    struct scored *heap;
    struct box *kept;
};

static double number_of(const struct kcall *call, int i, double otherwise)
{
    const struct tensor *t = kcall_in(call, i);
    double value = otherwise;
    if (t && tensor_elements(t) != 1)
        fail("%s: operand %d has %lld entries, expected 1", kcall_where(call), i, (long long)tensor_elements(t));
    if (t)
        convert_to_f64(t->dtype, t->data, 1, &value);
    return value;
}

/* Corners in any order, or a centre with width and height. */
static struct box read_box(const struct nms *s, int64_t image, int64_t i)
{
    const float *at = s->boxes + (image * s->n + i) * 4;
    struct box b = {.index = i};
    if (s->centre) {
        b.top = at[1] - at[3] / 2;
        b.bottom = at[1] + at[3] / 2;
        b.left = at[0] - at[2] / 2;
        b.right = at[0] + at[2] / 2;
    } else {
        b.top = at[0] < at[2] ? at[0] : at[2];
        b.bottom = at[0] < at[2] ? at[2] : at[0];
        b.left = at[1] < at[3] ? at[1] : at[3];
        b.right = at[1] < at[3] ? at[3] : at[1];
    }
    b.area = (b.bottom - b.top) * (b.right - b.left);
    return b;
}

static bool overlaps(const struct box *a, const struct box *b, float most)
{
    float top = a->top > b->top ? a->top : b->top, bottom = a->bottom < b->bottom ? a->bottom : b->bottom;
    float left = a->left > b->left ? a->left : b->left, right = a->right < b->right ? a->right : b->right;
    float common = bottom > top && right > left ? (bottom - top) * (right - left) : 0, all = a->area + b->area - common;
    return a->area > 0 && b->area > 0 && all > 0 && common / all > most;
}

/* By greater score; equal scores by index. */
static bool before(const struct scored *a, const struct scored *b)
{
    return a->score != b->score ? a->score > b->score : a->index < b->index;
}

static void sift_down(struct scored *heap, int64_t n, int64_t at)
{
    for (int64_t best = at;; at = best) {
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < n && before(&heap[child], &heap[best]))
                best = child;
        if (best == at)
            return;
        struct scored swap = heap[at];
        heap[at] = heap[best];
        heap[best] = swap;
    }
}

/* Selects the boxes of one image and class into `kept`; returns their number. */
static int64_t select_boxes(const struct nms *s, int64_t image, int64_t class)
{
    const float *score = s->scores + (image * s->classes + class) * s->n;
    int64_t n = 0, kept = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (score[i] > s->least)
            s->heap[n++] = (struct scored){score[i], (int32_t)i};
    for (int64_t i = n / 2; i-- > 0;)
        sift_down(s->heap, n, i);
    while (n > 0 && kept < s->most) {
        struct box b = read_box(s, image, s->heap[0].index);
        bool free = true;
        s->heap[0] = s->heap[--n];
        sift_down(s->heap, n, 0);
        for (int64_t k = 0; free && k < kept; k++)
            free = !overlaps(&b, &s->kept[k], s->overlap);
        if (free)
            s->kept[kept++] = b;
    }
    return kept;
}

static void read_call(struct kcall *call, struct nms *s)
{
    const struct tensor *boxes = &call->in[0], *scores = &call->in[1];
    double most = number_of(call, 2, 0);
    *s = (struct nms){.images = scores->dim[0],
                      .classes = scores->dim[1],
                      .n = scores->dim[2],
                      .overlap = (float)number_of(call, 3, 0),
                      .least = (float)number_of(call, 4, -(double)INFINITY),
                      .centre = attr_int(call->node, "center_point_box") != 0};
    if (boxes->dim[0] != s->images || boxes->dim[1] != s->n || boxes->dim[2] != 4 || s->n > INT32_MAX)
        fail("%s: boxes and scores do not agree in images or boxes", kcall_where(call));
    if (!dtype_fits_f32(boxes->dtype) || !dtype_fits_f32(scores->dtype))
        kcall_bad_type(call, dtype_fits_f32(boxes->dtype) ? scores->dtype : boxes->dtype);
    s->most = most < 0 ? 0 : most > (double)s->n ? s->n : (int64_t)most;
    s->boxes = tensor_f32(call->env, boxes, ROOM_A);
    s->scores = tensor_f32(call->env, scores, ROOM_B);
    s->heap = kenv_room(call->env, ROOM_TURN_Q, kcall_bytes(call, s->n, sizeof *s->heap));
    s->kept = kenv_room(call->env, ROOM_TURN_K, kcall_bytes(call, s->most, sizeof *s->kept));
}

int64_t index_selected(struct kcall *call)
{
    struct nms s;
    int64_t count = 0;
    read_call(call, &s);
    for (int64_t i = 0; i < s.images * s.classes; i++)
        count += select_boxes(&s, i / s.classes, i % s.classes);
    return count;
}

void kern_NonMaxSuppression(struct kcall *call)
{
    struct nms s;
    int64_t *to = call->out[0].data, room = call->out[0].dim[0], at = 0;
    read_call(call, &s);
    for (int64_t i = 0; i < s.images * s.classes; i++) {
        int64_t kept = select_boxes(&s, i / s.classes, i % s.classes);
        if (kept > room - at)
            fail("%s: more boxes are selected than the %lld of its result", kcall_where(call), (long long)room);
        for (int64_t k = 0; k < kept; k++, at++) {
            to[3 * at] = i / s.classes;
            to[3 * at + 1] = i % s.classes;
            to[3 * at + 2] = s.kept[k].index;
        }
    }
    if (at != room)
        fail("%s: %lld boxes are selected, its result has %lld", kcall_where(call), (long long)at, (long long)room);
}
