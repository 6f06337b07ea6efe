/* collectives: every collective over every kind of split, on each communicator, against what the definition says. Element i of a global
 * tensor has the value f(i), so what each rank must hold afterwards is known without communication.
 *
 *   collectives self | local N | machines N RANKS | mpi       exit status 77: no MPI
 *
 * machines: threads that take themselves for ranks of N machines. */
#include "op/runtime/runtime.h"
#include "run/collective/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct arena *a;
    struct alg *alg;
    struct comm *comm;
    struct bindings bind;
    struct buffer scratch;
    int64_t strip;
    int cases;
};

/* The splits under test of a dimension of n = 12 elements (or as many as the kind needs). */
enum split_kind { EVEN, UNEVEN, EMPTY, SEGMENTED, PERMUTED, OVERLAP, STRIDED, BALANCED, KINDS };

static const struct split *listed(struct fixture *f, int64_t n, const int *count, struct interval (*list)[2])
{
    const struct interval **at = NEWN(f->a, const struct interval *, f->comm->size);
    for (int r = 0; r < f->comm->size; r++)
        at[r] = list[r];
    return split_list(f->alg, f->comm->size, n, count, at);
}

static const struct split *make_split(struct fixture *f, enum split_kind kind, int64_t n)
{
    int t = f->comm->size;
    struct interval(*list)[2] = arena_array(f->a, (size_t)t, sizeof *list);
    int *count = NEWN(f->a, int, t);
    for (int r = 0; r < t; r++) {
        int64_t lo = n * r / t, hi = n * (r + 1) / t;
        count[r] = 1;
        list[r][0] = (struct interval){lo, hi};
        if (kind == EMPTY)
            list[r][0] = r == t - 1 ? (struct interval){0, n} : (struct interval){0, 0}, count[r] = r == t - 1;
        if (kind == PERMUTED)
            list[r][0] = (struct interval){n * (t - 1 - r) / t, n * (t - r) / t};
        if (kind == OVERLAP)
            list[r][0] = (struct interval){n * (r / 2 * 2) / t, n * (r / 2 * 2 + 2 < t ? r / 2 * 2 + 2 : t) / t};
        if (kind == UNEVEN)
            list[r][0] = (struct interval){r ? r + n - t : 0, r + 1 + n - t};
        if (kind == SEGMENTED) {
            int64_t half = n / 2;
            list[r][0] = (struct interval){half * r / t, half * (r + 1) / t};
            list[r][1] = (struct interval){half + (n - half) * r / t, half + (n - half) * (r + 1) / t};
            count[r] = 2;
        }
    }
    if (kind == EVEN || kind == STRIDED || kind == BALANCED) {
        const struct dim *size = kind == BALANCED ? dim_sym(f->alg, "S", 0) : dim_int(f->alg, kind == STRIDED ? n / 2 : n);
        const struct split *s = split_even(f->alg, t, size);
        return kind == STRIDED ? split_scale(f->alg, s, dim_int(f->alg, 2), dim_int(f->alg, 1)) : s;
    }
    for (int r = 0; r < t; r++)
        if (list[r][0].lo >= list[r][0].hi && count[r] == 1)
            count[r] = 0;
    return listed(f, n, count, list);
}

static struct tensor make(struct fixture *f, enum dtype dtype, const int64_t *dim)
{
    struct tensor t = {.dtype = dtype, .rank = 3, .dim = {dim[0], dim[1], dim[2]}};
    t.data = arena_alloc(f->a, tensor_bytes(&t) + 64);
    memset(t.data, 0x5a, tensor_bytes(&t));
    return t;
}

static int64_t value_at(const int64_t *global, const int64_t *index)
{
    return (index[0] * global[1] + index[1]) * global[2] + index[2] + 1;
}

static int64_t position(const struct intervals *p, int64_t local)
{
    for (int i = 0; i < p->n; i++) {
        int64_t n = p->at[i].hi - p->at[i].lo;
        if (local < n)
            return p->at[i].lo + local;
        local -= n;
    }
    bug("position outside the pieces");
}

/* Visits every element of rank r's part of a global tensor: axis split by s (NULL: replicated). check: compare, else write. */
static void visit(struct fixture *f, struct tensor *t, const int64_t *global, int axis, const struct split *s, int64_t factor, bool check,
                  const char *what)
{
    struct intervals p = s ? intervals_of(f->a, s, f->comm->rank, false, &f->bind) : intervals_range(f->a, 0, global[axis]);
    int64_t *at = t->data, i[3];
    for (i[0] = 0; i[0] < t->dim[0]; i[0]++)
        for (i[1] = 0; i[1] < t->dim[1]; i[1]++)
            for (i[2] = 0; i[2] < t->dim[2]; i[2]++, at++) {
                int64_t g[3] = {i[0], i[1], i[2]};
                g[axis] = position(&p, i[axis]);
                int64_t want = factor * value_at(global, g);
                if (!check)
                    *at = want;
                else if (*at != want)
                    fail("%s: rank %d of %d at [%lld, %lld, %lld]: %lld, expected %lld", what, f->comm->rank, f->comm->size,
                         (long long)i[0], (long long)i[1], (long long)i[2], (long long)*at, (long long)want);
            }
}

static struct tensor part(struct fixture *f, const int64_t *global, int axis, const struct split *s)
{
    int64_t dim[3] = {global[0], global[1], global[2]};
    if (s) {
        struct intervals p = intervals_of(f->a, s, f->comm->rank, false, &f->bind);
        dim[axis] = intervals_extent(&p);
    }
    return make(f, DT_I64, dim);
}

static void run(struct fixture *f, struct collective_node c, const struct tensor *x, struct tensor *y)
{
    c.id = ++f->cases;
    collective_run(&c, collective_route(f->a, &c, f->comm, x, y, &f->bind, f->strip), f->comm, &f->scratch, x, y);
}

static int64_t rank_sum(int size)
{
    return (int64_t)size * (size + 1) / 2;
}

static void try_splits(struct fixture *f, enum split_kind k1, enum split_kind k2, int axis, int64_t n)
{
    int64_t global[3] = {3, 4, 2};
    global[axis] = n;
    bindings_set(f->a, &f->bind, "S", n);
    const struct split *from = make_split(f, k1, n), *to = make_split(f, k2, n);
    int other = (axis + 1) % 3;
    char *what = arena_printf(f->a, "axis %d of %lld from %s to %s", axis, (long long)n, split_str(f->a, from), split_str(f->a, to));
    struct tensor x = part(f, global, axis, from), whole = part(f, global, axis, NULL), y = part(f, global, axis, to),
                  term = part(f, global, axis, NULL);
    visit(f, &x, global, axis, from, 1, false, what);
    run(f, (struct collective_node){.kind = COLL_ALLGATHER, .name = what, .axis = axis, .axis2 = -1, .from = from}, &x, &whole);
    visit(f, &whole, global, axis, NULL, 1, true, what);
    run(f, (struct collective_node){.kind = COLL_REDISTRIBUTE, .name = what, .axis = axis, .axis2 = -1, .from = from, .to = to}, &x, &y);
    visit(f, &y, global, axis, to, 1, true, what);
    visit(f, &term, global, axis, NULL, f->comm->rank + 1, false, what);
    run(f, (struct collective_node){.kind = COLL_REDUCESCATTER, .name = what, .axis = axis, .axis2 = -1, .to = to, .red = RED_SUM}, &term,
        &y);
    visit(f, &y, global, axis, to, rank_sum(f->comm->size), true, what);
    global[other] = n;
    struct tensor wide = part(f, global, axis, from), turned = part(f, global, other, to);
    visit(f, &wide, global, axis, from, 1, false, what);
    run(f, (struct collective_node){.kind = COLL_ALLTOALL, .name = what, .axis = other, .axis2 = axis, .from = from, .to = to}, &wide,
        &turned);
    visit(f, &turned, global, other, to, 1, true, what);
}

static void try_reduce(struct fixture *f, int64_t n, enum redop op)
{
    int64_t dim[3] = {n, 1, 1};
    struct tensor x = make(f, DT_F32, dim), y = make(f, DT_F32, dim);
    float *at = x.data, *got = y.data;
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)(i % 100) + (float)f->comm->rank;
    run(f, (struct collective_node){.kind = COLL_ALLREDUCE, .name = "reduce", .axis2 = -1, .red = op}, &x, &y);
    for (int64_t i = 0; i < n; i++) {
        float first = (float)(i % 100), last = first + (float)(f->comm->size - 1), want = op == RED_MAX ? last : op == RED_MIN ? first : 0;
        for (int r = 0; op == RED_SUM && r < f->comm->size; r++)
            want += first + (float)r;
        if (got[i] != want)
            fail("AllReduce %s of %lld: element %lld is %g, expected %g", redop_name(op), (long long)n, (long long)i, (double)got[i],
                 (double)want);
    }
}

static void try_broadcast(struct fixture *f, int root)
{
    int64_t dim[3] = {5, 1, 1};
    struct tensor x = make(f, DT_I64, dim), y = make(f, DT_I64, dim);
    for (int i = 0; i < 5; i++)
        ((int64_t *)x.data)[i] = f->comm->rank * 10 + i;
    run(f, (struct collective_node){.kind = COLL_BROADCAST, .name = "broadcast", .axis2 = -1, .root = root}, &x, &y);
    for (int i = 0; i < 5; i++)
        require(((int64_t *)y.data)[i] == root * 10 + i);
}

static float addend(int rank, int64_t i)
{
    return (float)((i * 37 + rank * 11) % 201 - 100) * (i % 3 ? 1.0f : 1e-6f);
}

static void sum_short(struct comm *c, enum wire wire, const float *x, float *y, int64_t n)
{
    c->wire = wire;
    c->allreduce(c, x, y, n, DT_F32, RED_SUM);
    c->wire = WIRE_F32;
}

/* Sums in short messages: near the sum, by the roundoff of each addend and of the sum, and the same bits on all ranks. */
static void try_wire(struct fixture *f, enum wire wire, int64_t n)
{
    struct comm *c = f->comm;
    float *x = NEWN(f->a, float, n), *y = NEWN(f->a, float, n), roundoff = wire == WIRE_BF16 ? 1 / 256.0f : 1 / 127.0f;
    for (int64_t i = 0; i < n; i++)
        x[i] = addend(c->rank, i);
    sum_short(c, wire, x, y, n);
    for (int64_t i = 0; i < n; i++) {
        float want = 0;
        for (int r = 0; r < c->size; r++)
            want += addend(r, i);
        if (!(fabsf(y[i] - want) <= 100 * roundoff * (float)(2 * c->size)))
            fail("short messages: element %lld of %lld is %g, expected %g", (long long)i, (long long)n, (double)y[i], (double)want);
    }
    const float *all = comm_gather(c, f->a, "sums", y, (size_t)n * sizeof *y);
    for (int r = 0; r < c->size; r++)
        if (memcmp(all + r * n, y, (size_t)n * sizeof *y) != 0)
            fail("short messages: ranks %d and %d have other sums of %lld elements", c->rank, r, (long long)n);
    f->cases++;
}

/* What is no number, or too large for its block, is not lost. */
static void try_wire_odd(struct fixture *f, enum wire wire)
{
    enum { N = 100 };
    struct comm *c = f->comm;
    float *x = NEWN(f->a, float, N), *y = NEWN(f->a, float, N);
    for (int i = 0; i < N; i++)
        x[i] = i == 40 ? NAN : i == 70 ? INFINITY : 0;
    sum_short(c, wire, x, y, N);
    if (!isnan(y[40]) || isfinite(y[70]) || y[0] != 0 || y[99] != 0)
        fail("short messages: NaN, infinity and zeros became %g, %g, %g and %g", (double)y[40], (double)y[70], (double)y[0], (double)y[99]);
    f->cases++;
}

/* strip: of a few rows with a rest, and of everything at once. */
static void cases_by(struct comm *comm, int64_t strip, int *cases)
{
    struct arena *a = arena_new();
    struct fixture f = {.a = a, .alg = alg_new(a), .comm = comm, .strip = strip, .cases = *cases};
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < KINDS; k++)
            for (int axis = 0; axis < 3; axis++)
                try_splits(&f, (enum split_kind)i, (enum split_kind)k, axis, 24);
    try_splits(&f, BALANCED, BALANCED, 1, 0);
    try_splits(&f, BALANCED, BALANCED, 1, 1);
    try_splits(&f, BALANCED, BALANCED, 0, 7);
    for (int64_t n = 1; n <= 100000; n *= 10)
        for (int op = RED_SUM; op <= RED_MIN; op++)
            try_reduce(&f, n, (enum redop)op);
    for (int r = 0; r < comm->size; r++)
        try_broadcast(&f, r);
    for (int wire = WIRE_BF16; wire <= WIRE_Q8; wire++) {
        for (int64_t n = 1; n <= 100000; n = n * 7 + 2)
            try_wire(&f, (enum wire)wire, n);
        try_wire_odd(&f, (enum wire)wire);
    }
    *cases = f.cases;
    buffer_free(&f.scratch);
    arena_free(a);
}

/* ---- blocks of any size, around those where the way changes ---- */

static int64_t draw(uint64_t *seed, int64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(*seed >> 33) % below;
}

static int64_t draw_bytes(uint64_t *seed)
{
    static const int64_t near[] = {0, 64, 4096, 16384, SHARED_STEP_BYTES / 3, SHARED_STEP_BYTES, 3 * SHARED_STEP_BYTES};
    enum { NEAR = sizeof near / sizeof *near, ASIDE = 65 };
    int64_t bytes = near[draw(seed, NEAR)] + draw(seed, 2 * ASIDE + 1) - ASIDE;
    return bytes < 0 ? 0 : bytes;
}

static uint8_t byte_at(int number, int from, int to, int64_t i)
{
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(number * 4099 + from * 67 + to);
    return (uint8_t)(x ^ x >> 29 ^ x >> 47);
}

static char *write_block(struct fixture *f, int to, int64_t bytes)
{
    char *at = arena_alloc(f->a, (size_t)bytes + 1);
    for (int64_t i = 0; i < bytes; i++)
        at[i] = (char)byte_at(f->cases, f->comm->rank, to, i);
    return at;
}

static void check_block(const struct fixture *f, const char *seen, int from, int to, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if (seen[i] != (char)byte_at(f->cases, from, to, i))
            fail("exchange %d: byte %lld of %lld from rank %d to rank %d is wrong", f->cases, (long long)i, (long long)bytes, from,
                 f->comm->rank);
}

/* Each rank sends blocks of its own sizes, or one to all. */
static void try_exchange(struct fixture *f, uint64_t *seed)
{
    struct comm *c = f->comm;
    int n = c->size, own = c->rank;
    bool same = draw(seed, 2);
    int64_t *bytes = NEWN(f->a, int64_t, n * n); /* from rank to rank */
    for (int i = 0; i < n * n; i++)
        bytes[i] = same && i % n ? bytes[i - 1] : draw_bytes(seed);
    c->id = ++f->cases;
    c->name = "exchange";
    for (int r = 0; r < n; r++) {
        c->send[r] = same && r ? c->send[0] : (struct block){write_block(f, r, bytes[own * n + r]), bytes[own * n + r]};
        c->recv[r] = (struct block){arena_alloc(f->a, (size_t)bytes[r * n + own] + 1), bytes[r * n + own]};
    }
    c->exchange(c, c->send, c->recv, c->seen);
    for (int r = 0; r < n; r++)
        check_block(f, c->seen[r], r, same ? 0 : own, bytes[r * n + own]);
    c->done(c);
}

static float small_addend(int64_t i, int rank)
{
    return (float)((i * 37 + rank * 11) % 201 - 100);
}

/* first: of the elements, in the vector of which they are summed. */
static void check_sums(const struct fixture *f, const char *what, const float *sum, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n; i++) {
        float want = 0;
        for (int r = 0; r < f->comm->size; r++)
            want += small_addend(i, r);
        if (sum[i - first] != want)
            fail("%s %d: element %lld of %lld is %g, expected %g", what, f->cases, (long long)(i - first), (long long)n,
                 (double)sum[i - first], (double)want);
    }
}

/* Shares of any sizes, and all shares on all ranks. */
static void try_sums(struct fixture *f, uint64_t *seed)
{
    struct comm *c = f->comm;
    int64_t *n = NEWN(f->a, int64_t, c->size), first = 0, all = 0;
    for (int r = 0; r < c->size; r++) {
        n[r] = draw_bytes(seed) / (int64_t)sizeof(float);
        first += r < c->rank ? n[r] : 0;
        all += n[r];
    }
    float *x = NEWN(f->a, float, all), *y = NEWN(f->a, float, all), *at = x;
    for (int64_t i = 0; i < all; i++)
        x[i] = small_addend(i, c->rank);
    c->id = ++f->cases;
    c->name = "sums";
    for (int r = 0; r < c->size; at += n[r++])
        c->send[r] = (struct block){at, n[r] * (int64_t)sizeof(float)};
    c->reduce_scatter(c, y, n[c->rank], DT_F32, RED_SUM);
    check_sums(f, "ReduceScatter", y, first, n[c->rank]);
    c->id = ++f->cases;
    c->allreduce(c, x, y, all, DT_F32, RED_SUM);
    check_sums(f, "AllReduce", y, 0, all);
}

/* One after another, so that each uses memory that others have used. */
static void blocks_of_any_size(struct comm *comm, int *cases)
{
    enum { ROUNDS = 60 };
    uint64_t seed = (uint64_t)comm->size;
    struct fixture f = {.comm = comm, .cases = *cases};
    for (int i = 0; i < ROUNDS; i++) {
        f.a = arena_new();
        try_exchange(&f, &seed);
        try_sums(&f, &seed);
        arena_free(f.a);
    }
    *cases = f.cases;
}

/* Takes many steps. */
static void large_case(struct comm *comm)
{
    struct arena *a = arena_new();
    struct fixture f = {.a = a, .alg = alg_new(a), .comm = comm, .strip = STRIP_BYTES};
    try_reduce(&f, 5 << 20, RED_SUM);
    buffer_free(&f.scratch);
    arena_free(a);
}

/* The ranks of one color form a group of their own, numbered in order, while the other colors run. */
static void part_cases(struct comm *comm, int color, int rank, int size)
{
    int cases = 0;
    struct comm *part = comm->split(comm, color);
    if (part->rank != rank || part->size != size)
        fail("rank %d of %d is rank %d of %d of its part, expected %d of %d", comm->rank, comm->size, part->rank, part->size, rank, size);
    cases_by(part, STRIP_BYTES, &cases);
    part->free(part);
}

static void all_cases(struct comm *comm, void *data)
{
    int cases = 0, r = comm->rank, n = comm->size, odd = r % 2;
    (void)data;
    cases_by(comm, 100, &cases);
    cases_by(comm, STRIP_BYTES, &cases);
    if (n <= 4) {
        blocks_of_any_size(comm, &cases);
        large_case(comm);
    }
    part_cases(comm, r / 2, r % 2, r - r % 2 + 1 < n ? 2 : 1);
    part_cases(comm, odd, r / 2, (n + 1 - odd) / 2);
    comm->barrier(comm);
    if (comm->rank == 0)
        printf("%s, %d ranks%s: %d collectives are right\n", comm->kind, comm->size, comm->polls ? " by messages" : "", cases);
}

static void cases_of_machines(struct comm *comm, void *ranks)
{
    int cases = 0, here = *(int *)ranks;
    machines_setup(comm, comm->rank / here * here);
    require(comm->host && comm->host->size == here && comm->across->size == comm->size / here);
    cases_by(comm, 100, &cases);
    cases_by(comm, STRIP_BYTES, &cases);
    blocks_of_any_size(comm, &cases);
    comm->barrier(comm);
    if (comm->rank == 0)
        printf("%d machines of %d ranks: %d collectives are right\n", comm->size / here, here, cases);
    machines_release(comm);
}

int main(int argc, char **argv)
{
    diag_setup("collectives", 0);
    const char *kind = argc > 1 ? argv[1] : "self";
    if (strcmp(kind, "local") == 0) {
        comm_local_run(argc > 2 ? atoi(argv[2]) : 4, all_cases, NULL);
        return 0;
    }
    if (strcmp(kind, "machines") == 0 && argc == 4) {
        int ranks = atoi(argv[3]);
        comm_local_run(atoi(argv[2]) * ranks, cases_of_machines, &ranks);
        return 0;
    }
    struct comm *comm = strcmp(kind, "mpi") ? comm_self() : comm_mpi(&argc, &argv);
    if (!comm)
        return 77;
    all_cases(comm, NULL);
    comm->free(comm);
    return 0;
}
