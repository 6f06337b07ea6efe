/* comm_wire: sums over ranks with compressed messages. Each rank encodes its addends once; the receiver decodes them and adds in float32,
 * in rank order; the sum is encoded once more on its way back. All ranks decode the same bytes, the owner's included, so they get the same
 * bits.
 *
 *   bf16   the upper half of each float: 2 bytes
 *   q8     blocks of 32 floats: a bf16 scale, the largest magnitude / 127, and an integer of 8 bits each: 34 bytes. A block that has a
 *          number that is not finite arrives as NaN */
#include "base/half.h"
#include "run/comm/comm.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BLOCK = SUM_WIRE_BLOCK, ACROSS = 1024 }; /* ACROSS: floats decoded at a time, a multiple of BLOCK */
static const float most = 127;                  /* of an integer */

/* The scale of n <= BLOCK floats: NaN if one is not finite. */
static float scale_of(const float *x, int n)
{
    float largest = 0, odd = 0;
#pragma omp simd reduction(max : largest) reduction(+ : odd)
    for (int i = 0; i < n; i++) {
        float size = fabsf(x[i]);
        largest = size > largest ? size : largest;
        odd += x[i] * 0;
    }
    float scale = bf16_to_f32(f32_to_bf16(largest / most));
    return odd != 0 ? NAN : scale < FLT_MIN ? 0 : scale;
}

/* Rounds to the nearest integer; |x| is far below 2^22, so the integer is in the lowest bits of the sum. */
static int8_t nearest(float x)
{
    float sum = x + 0x1.8p23f;
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return (int8_t)(uint8_t)(bits & 255);
}

static void encode_block(const float *x, int n, uint16_t *scale, int8_t *q)
{
    float s = scale_of(x, n), inverse = s > 0 ? 1 / s : 0;
    *scale = f32_to_bf16(s);
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float y = x[i] * inverse;
        y = y > most ? most : y < -most ? -most : y;
        q[i] = nearest(y);
    }
}

void comm_wire_encode(enum wire wire, const float *x, int64_t n, void *code)
{
    uint16_t *half = code;
    int8_t *q = (int8_t *)(half + (n + BLOCK - 1) / BLOCK);
    if (wire == WIRE_BF16) {
        for (int64_t i = 0; i < n; i++)
            half[i] = f32_to_bf16(x[i]);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK)
        encode_block(x + i, (int)(n - i < BLOCK ? n - i : BLOCK), half + i / BLOCK, q + i);
}

void comm_wire_decode(enum wire wire, const void *code, int64_t n, int64_t lo, int m, float *x)
{
    const uint16_t *half = code;
    const int8_t *q = (const int8_t *)(half + (n + BLOCK - 1) / BLOCK) + lo;
    if (wire == WIRE_BF16) {
        for (int i = 0; i < m; i++)
            x[i] = bf16_to_f32(half[lo + i]);
        return;
    }
    for (int i = 0; i < m; i++)
        x[i] = bf16_to_f32(half[(lo + i) / BLOCK]) * (float)q[i];
}

bool comm_wire_shortens(const struct comm *c, enum dtype dtype, enum redop op)
{
    return c->wire != WIRE_F32 && dtype == DT_F32 && op == RED_SUM;
}

static int64_t room_for(const struct comm *c, int64_t floats)
{
    return (sum_wire_bytes(c->wire, floats) + 1) / 2 * 2;
}

static void add_codes(struct comm *c, float *out, int64_t n)
{
    float part[ACROSS];
    for (int64_t lo = 0; lo < n; lo += ACROSS) {
        int m = (int)(n - lo < ACROSS ? n - lo : ACROSS);
        comm_wire_decode(c->wire, c->seen[0], n, lo, m, out + lo);
        for (int r = 1; r < c->size; r++) {
            comm_wire_decode(c->wire, c->seen[r], n, lo, m, part);
            for (int i = 0; i < m; i++)
                out[lo + i] += part[i];
        }
    }
}

void comm_wire_reduce_scatter(struct comm *c, float *out, int64_t n)
{
    int64_t total = 0, floats = 0;
    for (int r = 0; r < c->size; r++) {
        floats = c->send[r].bytes / (int64_t)sizeof(float);
        if (!i64_add(total, room_for(c, floats) + room_for(c, n), &total))
            fail("collective '%s': %lld elements are too many", c->name ? c->name : "?", (long long)n);
    }
    char *room = buffer_reserve(c->scratch, (size_t)total);
    struct block before = {NULL, 0};
    for (int r = 0; r < c->size; r++) {
        struct block from = c->send[r];
        floats = from.bytes / (int64_t)sizeof(float);
        if (r > 0 && from.at == before.at && from.bytes == before.bytes) {
            c->send[r] = c->send[r - 1];
        } else {
            comm_wire_encode(c->wire, from.at, floats, room);
            c->send[r] = (struct block){room, sum_wire_bytes(c->wire, floats)};
            room += room_for(c, floats);
        }
        before = from;
    }
    for (int r = 0; r < c->size; r++, room += room_for(c, n))
        c->recv[r] = (struct block){room, sum_wire_bytes(c->wire, n)};
    c->exchange(c, c->send, c->recv, c->seen);
    add_codes(c, out, n);
    c->done(c);
}

void comm_wire_gather_shares(struct comm *c, float *at, int64_t n)
{
    int64_t total = 0;
    for (int r = 0; r < c->size; r++)
        total += room_for(c, comm_share(c, at, n, 1, r).bytes);
    char *room = buffer_reserve(c->scratch, (size_t)total), *own = NULL;
    for (int r = 0; r < c->size; r++) {
        int64_t floats = comm_share(c, at, n, 1, r).bytes;
        c->recv[r] = (struct block){room, sum_wire_bytes(c->wire, floats)};
        room += room_for(c, floats);
    }
    struct block mine = comm_share(c, at, n, sizeof(float), c->rank);
    own = c->recv[c->rank].at;
    comm_wire_encode(c->wire, mine.at, mine.bytes / (int64_t)sizeof(float), own);
    for (int r = 0; r < c->size; r++)
        c->send[r] = c->recv[c->rank];
    c->exchange(c, c->send, c->recv, c->seen);
    for (int r = 0; r < c->size; r++) {
        struct block share = comm_share(c, at, n, sizeof(float), r);
        int64_t floats = share.bytes / (int64_t)sizeof(float);
        for (int64_t lo = 0; lo < floats; lo += ACROSS)
            comm_wire_decode(c->wire, c->seen[r], floats, lo, (int)(floats - lo < ACROSS ? floats - lo : ACROSS), (float *)share.at + lo);
    }
    c->done(c);
}
