/* The slab against an overlap checker on random lifetimes; interval lists; sums in rank order; copies and barriers; memory that ranks
 * share; the binding of symbols; weights of two graphs; prices that can't be what was measured. */
#include "op/infer/infer.h"
#include "run/measure/measure.h"
#include "run/session/session.h"
#include "tests/unit/main.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct arena *a;
static void setup(void)
{
    a = arena_new();
}
static void teardown(void)
{
    arena_free(a);
}

static bool overlap(const struct slab_item *x, const struct slab_item *y)
{
    bool time = x->first <= y->last && y->first <= x->last;
    return time && x->bytes && y->bytes && x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* The lowest offset at which the item meets none of the others that are placed already. */
static int64_t lowest(const struct slab_item *item, int n, const bool *placed, int which)
{
    struct slab_item at = item[which];
    bool again = true;
    for (at.offset = 0; again;) {
        again = false;
        for (int k = 0; k < n; k++)
            if (placed[k] && overlap(&at, &item[k])) {
                at.offset = (item[k].offset + item[k].bytes + 63) / 64 * 64;
                again = true;
            }
    }
    return at.offset;
}

START_TEST(plan_is_the_greedy_one)
{
    enum { N = 150 };
    struct slab_item item[N];
    bool placed[N] = {false};
    srand((unsigned)_i);
    for (int i = 0; i < N; i++) {
        int first = rand() % 90 - 3, spread = rand() % 2 ? 4 : 40;
        item[i] = (struct slab_item){rand() % 8 ? 1 + rand() % (_i % 2 ? 300 : 5000) : 0, first, first + rand() % spread, -1};
    }
    slab_assign(a, item, N);
    for (int done = 0; done < N; done++) {
        int next = -1;
        for (int i = 0; i < N; i++)
            if (!placed[i] && (next < 0 || item[i].bytes > item[next].bytes))
                next = i;
        ck_assert_int_eq(item[next].offset, item[next].bytes ? lowest(item, N, placed, next) : 0);
        placed[next] = true;
    }
}
END_TEST

START_TEST(plan_is_disjoint)
{
    enum { N = 120 };
    struct slab_item item[N];
    srand((unsigned)_i);
    for (int i = 0; i < N; i++) {
        int first = rand() % 60;
        item[i] = (struct slab_item){rand() % 5 ? rand() % 5000 : 0, first, first + rand() % 10, -1};
    }
    int64_t total = slab_assign(a, item, N), all = 0;
    for (int i = 0; i < N; i++) {
        all += item[i].bytes + 63;
        ck_assert_int_eq(item[i].offset % 64, 0);
        ck_assert(item[i].bytes == 0 || item[i].offset + item[i].bytes <= total);
        for (int k = 0; k < i; k++)
            ck_assert(!overlap(&item[i], &item[k]));
    }
    ck_assert(total <= all);
}
END_TEST

START_TEST(plan_reuses_memory)
{
    struct slab_item item[4] = {{640, 0, 1, 0}, {640, 1, 2, 0}, {640, 2, 3, 0}, {640, 3, 4, 0}};
    ck_assert_int_eq(slab_assign(a, item, 4), 1280);
}
END_TEST

static struct intervals list(int n, struct interval *at)
{
    return (struct intervals){n, at};
}

START_TEST(pieces_divide)
{
    struct interval x[] = {{10, 20}, {0, 5}}, y[] = {{3, 12}, {18, 30}};
    struct intervals p = list(2, x), q = list(2, y), meet = intervals_meet(a, &p, &q), rest = intervals_without(a, &p, &q);
    ck_assert_int_eq(meet.n, 3);
    ck_assert(meet.at[0].lo == 10 && meet.at[0].hi == 12 && meet.at[1].lo == 18 && meet.at[1].hi == 20 && meet.at[2].lo == 3 &&
              meet.at[2].hi == 5);
    ck_assert_int_eq(rest.n, 2);
    ck_assert(rest.at[0].lo == 12 && rest.at[0].hi == 18 && rest.at[1].lo == 0 && rest.at[1].hi == 3);
    struct intervals local = intervals_local(a, &meet, &p);
    ck_assert(local.n == 3 && local.at[0].lo == 0 && local.at[1].lo == 8 && local.at[2].lo == 13);
}
END_TEST

START_TEST(sums_in_order)
{
    float x[3] = {1e8f, 1, -0.0f}, y[3] = {-1e8f, 2, -0.0f}, z[3] = {1, 3, -0.0f}, out[3];
    const void *in[3] = {x, y, z};
    comm_reduce(out, in, 3, 3, DT_F32, RED_SUM);
    ck_assert(out[0] >= 1 && out[0] <= 1 && out[1] >= 6 && out[1] <= 6);
    uint16_t b[2] = {0x3f80, 0x7f80}, c[2] = {0x4000, 0xff80}, sum[2]; /* bf16 1, inf; 2, -inf */
    const void *small[2] = {b, c};
    comm_reduce(sum, small, 2, 2, DT_BF16, RED_SUM);
    ck_assert_int_eq(sum[0], 0x4040);
    ck_assert((sum[1] & 0x7fff) > 0x7f80);
    uint16_t large = 0x6800, one = 0x3c00, exact; /* f16 2048, 1: 2048 + 1 is 2048 in f16 */
    const void *halves[3] = {&large, &one, &one};
    comm_reduce(&exact, halves, 3, 1, DT_F16, RED_SUM);
    ck_assert_int_eq(exact, 0x6801);
    int64_t i = INT64_MAX, k = 1, wrapped;
    const void *ints[2] = {&i, &k};
    comm_reduce(&wrapped, ints, 2, 1, DT_I64, RED_SUM);
    ck_assert(wrapped == INT64_MIN);
}
END_TEST

/* Blocks of any size are reduced as single elements are. */
START_TEST(reduces_every_element_alike)
{
    enum { N = 700, RANKS = 3, MOST_BYTES = 8 };
    static const enum dtype types[] = {DT_F32, DT_F64, DT_F16, DT_BF16, DT_I8,  DT_U8,  DT_I16,
                                       DT_U16, DT_I32, DT_U32, DT_I64,  DT_U64, DT_BOOL};
    enum dtype t = types[_i % 13];
    size_t size = dtype_size(t);
    uint8_t x[RANKS][N * MOST_BYTES], all[N * MOST_BYTES], one[MOST_BYTES];
    const void *in[RANKS];
    srand((unsigned)_i);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < N * MOST_BYTES; i++)
            x[r][i] = (uint8_t)(rand() % 128 & (dtype_is_float(t) && i % (int)size == (int)size - 1 ? 0x3f : 0xff)); /* finite */
    for (int op = RED_SUM; op <= RED_MIN; op++)
        for (int n = 1 + _i; n <= N; n += 97)
            for (int ranks = 1; ranks <= RANKS; ranks++) {
                for (int r = 0; r < ranks; r++)
                    in[r] = x[r];
                comm_reduce(all, in, ranks, n, t, (enum redop)op);
                for (int i = 0; i < n; i++) {
                    const void *at[RANKS];
                    for (int r = 0; r < ranks; r++)
                        at[r] = x[r] + (size_t)i * size;
                    comm_reduce(one, at, ranks, 1, t, (enum redop)op);
                    ck_assert(memcmp(one, all + (size_t)i * size, size) == 0);
                }
            }
}
END_TEST

/* Both ways, for the first two of a size take turns. */
START_TEST(copies_all_bytes_and_no_others)
{
    enum { MOST = 600000, BEFORE = 64, BEHIND = 64 };
    static const int sizes[] = {0, 1, 63, 64, 65, 8191, 8192, 8193, 16383, 16384, 16385, 16447, 65535, 65537, 262144, 262145, 599999};
    char *from = arena_alloc(a, MOST + 1), *room = arena_alloc(a, BEFORE + MOST + BEHIND);
    char *to = room + BEFORE - (uintptr_t)room % BEFORE;
    struct copier copier = {.copies = 0};
    for (int i = 0; i <= MOST; i++)
        from[i] = (char)(i * 7 + i / 251);
    for (size_t k = 0; k < 4 * sizeof sizes / sizeof *sizes; k++) {
        int n = sizes[k / 4];
        memset(to, 0x55, (size_t)n + 8);
        copier_copy(&copier, to, from + k % 2, (size_t)n);
        ck_assert(memcmp(to, from + k % 2, (size_t)n) == 0);
        for (int i = n; i < n + 8; i++)
            ck_assert_int_eq(to[i], 0x55);
    }
}
END_TEST

/* ---- barriers ---- */

enum { BARRIER_RANKS = 3, BARRIER_PHASES = 300 };
struct barrier_rank {
    struct barrier barrier;
    atomic_int *entered;
    bool early;
    pthread_t thread;
};

static void *pass_barriers(void *rank)
{
    struct barrier_rank *r = rank;
    for (int phase = 1; phase <= BARRIER_PHASES; phase++) {
        atomic_fetch_add(r->entered, 1);
        barrier_wait(&r->barrier, NULL);
        r->early |= atomic_load(r->entered) < phase * BARRIER_RANKS;
    }
    return NULL;
}

/* Also across the wrap-around of the phase counter: no rank leaves before all have arrived. */
START_TEST(barriers_hold_until_all_have_come)
{
    struct meeting meeting = {.arrived = 0};
    struct arrival arrival[2][BARRIER_RANKS], *of[2][BARRIER_RANKS];
    struct barrier_rank rank[BARRIER_RANKS];
    atomic_int entered = 0;
    unsigned first = _i / 2 ? UINT_MAX - BARRIER_PHASES / 2 : 0;
    atomic_init(&meeting.last.phase, first);
    atomic_init(&meeting.last.sleepers, 0);
    for (int k = 0; k < 2 * BARRIER_RANKS; k++) {
        struct arrival *at = of[k % 2][k / 2] = &arrival[k % 2][k / 2];
        atomic_init(&at->phase, first);
        atomic_init(&at->sleepers, 0);
    }
    for (int r = 0; r < BARRIER_RANKS; r++) {
        rank[r] = (struct barrier_rank){{r, BARRIER_RANKS, _i % 2, false, first, &meeting, {of[0], of[1]}}, &entered, false, 0};
        ck_assert_int_eq(pthread_create(&rank[r].thread, NULL, pass_barriers, &rank[r]), 0);
    }
    for (int r = 0; r < BARRIER_RANKS; r++) {
        pthread_join(rank[r].thread, NULL);
        ck_assert(!rank[r].early);
    }
}
END_TEST

static struct signature one_input(struct alg *alg, const char *type)
{
    const char *error;
    struct signature s = {.path = "test", .nin = 1, .in = NEW(a, struct formal)};
    s.in->name = "x";
    ck_assert(type_parse(alg, type, 0, &s.in->type, &error));
    return s;
}

START_TEST(symbols_from_sizes)
{
    struct alg *alg = alg_new(a);
    struct bindings b = {0};
    struct signature s = one_input(alg, "f32[P + S, S, 2*Q]");
    struct tensor t = {.dtype = DT_F32, .rank = 3, .dim = {9, 4, 6}};
    signature_bind(a, &s, &t, &b);
    ck_assert_int_eq(*bindings_get(&b, "S"), 4);
    ck_assert_int_eq(*bindings_get(&b, "P"), 5);
    ck_assert_int_eq(*bindings_get(&b, "Q"), 3);
}
END_TEST

START_TEST(wrong_size_fails)
{
    struct alg *alg = alg_new(a);
    struct bindings b = {0};
    struct signature s = one_input(alg, "f32[2*S, S]");
    struct tensor t = {.dtype = DT_F32, .rank = 2, .dim = {6, 4}};
    signature_bind(a, &s, &t, &b);
}
END_TEST

/* A graph that reads one weight of 256 KiB: zeros, but for one byte, which no sample has. */
static struct graph *with_weight(int64_t rows, int64_t columns, int changed)
{
    struct graph *g = graph_new(a, alg_new(a), "g");
    struct value *w = graph_constant(g, "w", DT_F32, 0, NULL, &(float){0});
    struct constant *c = w->constant;
    graph_append(g, op_node(g, "", "Neg", "y", 1, &w));
    *c = (struct constant){.dtype = DT_F32, .rank = 2, .dim = {rows, columns}, .bytes = rows * columns * 4, .origin = "w"};
    char *data = arena_alloc(a, (size_t)c->bytes);
    memset(data, 0, (size_t)c->bytes);
    data[4096 + 17] = (char)changed;
    c->data = data;
    return g;
}

static bool shares_weight(struct graph *g, struct graph *earlier)
{
    int n = constant_share_weights(g, 1, &earlier);
    ck_assert_int_eq(n == 1, graph_find(g, "w")->constant == graph_find(earlier, "w")->constant);
    return n == 1;
}

START_TEST(equal_weights_of_two_graphs_become_one)
{
    struct graph *first = with_weight(256, 256, 1);
    ck_assert(shares_weight(with_weight(256, 256, 1), first));
    ck_assert(!shares_weight(with_weight(256, 256, 2), first));
    ck_assert(!shares_weight(with_weight(128, 512, 1), first));
    ck_assert(!shares_weight(with_weight(128, 256, 1), first));
}
END_TEST

static struct value *appended(struct graph *g, const char *op, const char *name, struct value *v)
{
    struct node *n = op_node(g, "", op, name, 1, &v);
    graph_append(g, n);
    return n->out[0];
}

/* Coordinates of the nonzero elements of x, negated repeatedly; then the coordinates of the nonzero elements of the result. */
static struct graph *with_dynamic_chain(int length)
{
    struct graph *g = graph_new(a, alg_new(a), "g");
    struct type type = {.dtype = DT_F32, .rank = 1, .dim = {dim_int(g->alg, 5000)}};
    struct value *v = graph_value(g, "x", &type);
    VEC_PUSH(a, &g->inputs, v);
    v = appended(g, "NonZero", "at", v);
    for (int i = 0; i < length; i++)
        v = appended(g, i == length / 2 ? "NonZero" : "Neg", arena_printf(a, "y%d", i), v);
    graph_add_output(g, v);
    return g;
}

START_TEST(dynamic_results_share_memory)
{
    enum { N = 5000, LENGTH = 60 };
    struct comm *comm = comm_self();
    struct session *s = session_new(with_dynamic_chain(LENGTH), comm, (struct session_options){.threads = 1});
    float x[N];
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(i % (run + 2));
        struct tensor in = {.dtype = DT_F32, .rank = 1, .dim = {N}, .data = x}, out;
        session_run(s, &in, &out);
        int64_t found = N - (N + run + 1) / (run + 2);
        ck_assert_int_eq(out.dim[0], 2);
        ck_assert_int_eq(out.dim[1], found);
        for (int64_t i = 0; i < found; i++)
            ck_assert_int_eq(llabs(((const int64_t *)out.data)[found + i]), i);
    }
    ck_assert_int_lt(session_stats(s)->slab_bytes, 6 * 2 * N * (int64_t)sizeof(int64_t));
    session_free(s);
    comm->free(comm);
}
END_TEST

START_TEST(what_keeps_ranks_from_sharing_is_told)
{
    const struct rlimit small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    struct comm *comm = comm_self();
    const char *why;
    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_ptr_null(shared_segments_make(a, comm, 1 << 20, &why));
    ck_assert_str_eq(why, "memory for them to share can't be taken: File too large");
    ck_assert_int_eq(setenv("TPC_MESSAGES", "1", 1), 0);
    ck_assert_ptr_null(shared_segments_make(a, comm, 1 << 20, &why));
    ck_assert_str_eq(why, "TPC_MESSAGES is 1");
    comm->free(comm);
}
END_TEST

/* For a graph that also moves bytes, and for few and many nodes. */
START_TEST(a_price_that_cannot_be_is_a_guess)
{
    struct measured m = {.price[PRICE_OF_pass_bandwidth_1m].alone = 1e12};
    bool clamped = false;
    double own = measure_price(&m, PRICE_OF_function_seconds, 1, 0, &clamped);
    ck_assert_msg(!clamped && own > 0, "%g", own);
    m.price[PRICE_OF_pass_bandwidth_1m].alone = 1;
    ck_assert_double_eq_tol(measure_price(&m, PRICE_OF_function_seconds, 1, 0, &clamped), own / 10, own / 1000);
    ck_assert(clamped);
    clamped = false;
    m.price[PRICE_OF_pass_bandwidth_1m].alone = 1e12;
    m.price[PRICE_OF_flops].alone = 1;
    measure_price(&m, PRICE_OF_conv_speed, 1, 2, &clamped);
    ck_assert(!clamped);
    measure_price(&m, PRICE_OF_conv_speed, 1, 0.9, &clamped);
    ck_assert(clamped);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run");
    TCase *t = unit_case(suite, "run", setup, teardown);
    tcase_add_loop_test(t, plan_is_disjoint, 0, 20);
    tcase_add_loop_test(t, plan_is_the_greedy_one, 0, 20);
    tcase_add_test(t, plan_reuses_memory);
    tcase_add_test(t, pieces_divide);
    tcase_add_test(t, sums_in_order);
    tcase_add_loop_test(t, reduces_every_element_alike, 0, 13);
    tcase_add_test(t, copies_all_bytes_and_no_others);
    tcase_add_loop_test(t, barriers_hold_until_all_have_come, 0, 4);
    tcase_add_test(t, symbols_from_sizes);
    tcase_add_exit_test(t, wrong_size_fails, 1);
    tcase_add_test(t, equal_weights_of_two_graphs_become_one);
    tcase_add_test(t, dynamic_results_share_memory);
    tcase_add_test(t, what_keeps_ranks_from_sharing_is_told);
    tcase_add_test(t, a_price_that_cannot_be_is_a_guess);
    return unit_run(suite);
}
