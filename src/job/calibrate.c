/* calibrate: measures the running ranks and writes the machine profile of tpc-shard --machine (--calibrate FILE). */
#include "job/job.h"
#include "op/prices.h"
#include "plan/cost/cost.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "run/measure/measure.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *today(struct arena *a)
{
    char text[32] = "";
    time_t now = time(NULL);
    struct tm t;
    if (gmtime_r(&now, &t))
        (void)strftime(text, sizeof text, "%Y-%m-%d", &t);
    return arena_strdup(a, text);
}

/* The file's name without folder and extension. */
static const char *profile_name(struct arena *a, const char *path)
{
    const char *base = path_base(path), *dot = strrchr(base, '.');
    return dot && dot > base ? arena_strndup(a, base, (size_t)(dot - base)) : base;
}

static void fit_overlap(struct machine *to, const struct measured *m)
{
    struct timed_overlap timed[MEASURED_BEHIND];
    for (int i = 0; i < m->nbehind; i++) {
        const struct measured_behind *at = &m->behind[i];
        timed[i] = (struct timed_overlap){at->sum, at->meanwhile, at->taken};
        explain("a sum of %.2f us takes %.2f us while ranks compute, and %.2f us from them", 1e6 * at->sum, 1e6 * at->meanwhile,
                1e6 * at->taken);
    }
    calibrate_overlap(to, m->nbehind, timed);
}

/* Fits the links of one level. Returns the error of the fit. */
static double fit_link(struct arena *a, struct link *to, const struct measured_link *m)
{
    struct timed_transfer *timed = NEWN(a, struct timed_transfer, m->n);
    for (int i = 0; i < m->n; i++)
        timed[i] = (struct timed_transfer){m->collective[i].kind, (double)m->collective[i].bytes, m->collective[i].seconds};
    return calibrate_fit(to, m->units, m->n, timed);
}

/* The network card limits what a machine's ranks send at once. */
static void fit_links(struct arena *a, struct machine *to, const struct comm *comm, const struct measured *m)
{
    for (int i = 0; i < m->links; i++)
        explain("links of level %d: off by %.0f%% (root mean square)", i, 100 * fit_link(a, &to->level[i], &m->link[i]));
    to->levels = m->links > 1 ? m->links : 1;
    if (m->links <= LINK_BETWEEN)
        return;
    struct link *between = &to->level[LINK_BETWEEN];
    between->ranks = comm->local_size;
    between->unit_bandwidth = between->bandwidth * between->ranks;
    between->bandwidth = fmax(between->bandwidth, m->alone);
}

static double model_of(const struct machine *to, const struct comm *comm, const struct measured_collective *c)
{
    return collective_seconds(to, &(struct sent){.kind = c->kind, .ranks = comm->size, .bytes = (double)c->bytes});
}

/* Root mean square of the relative errors of the profile, over the collectives of all ranks. */
static double error_of(const struct machine *to, const struct comm *comm, const struct measured_link *m)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (m->collective[i].kind) {
            double off = model_of(to, comm, &m->collective[i]) / m->collective[i].seconds - 1;
            sum += off * off;
            n++;
        }
    return n ? sqrt(sum / n) : 0;
}

/* Marks measured prices; with one rank, none of links. */
static void note_measured(struct machine *to, const struct measured *m)
{
    static const char *const kernels[] = {
        "machine_ranks",
        "bf16_seconds",
        "q8_seconds",
#define PRICE(key, ...) #key,
#define SHARED(key, ...) #key, "machine_" #key,
#include "schemas/prices.def"
    };
    static const char *const links[] = {
        "overlap_overhead",
        "overlap_share",
        "overlap_slowdown",
#define LINK(key, ...) #key,
#include "schemas/prices.def"
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        machine_note_measured(to, kernels[i]);
    for (size_t i = 0; m->links && i < sizeof links / sizeof *links; i++)
        machine_note_measured(to, links[i]);
}

/* Values that are not measured come from the reference: with one rank, those of collectives. A machine is at least as fast as one of its
 * ranks alone, even if several slow each other down. */
static struct machine machine_of(struct arena *a, const char *path, const struct comm *comm, const struct measured *m, double *error)
{
    struct machine to = machine_reference();
    to.name = profile_name(a, path);
    to.waited = m->busy;
    to.machine_ranks = comm->local_size;
#define PRICE(key, ...) to.key = m->price[PRICE_OF_##key].alone;
#define SHARED(key, ...) PRICE(key, ) to.machine_##key = fmax(to.key, comm->local_size * m->price[PRICE_OF_##key].together);
#include "schemas/prices.def"
    to.bf16_seconds = m->bf16;
    to.q8_seconds = m->q8;
    to.speeds = m->speed ? comm->size : 0;
    to.speed = m->speed;
    to.memories = m->memory ? comm->size : 0;
    to.memory = m->memory;
    fit_links(a, &to, comm, m);
    *error = m->links ? error_of(&to, comm, &m->whole) : 0;
    if (m->links)
        fit_overlap(&to, m);
    note_measured(&to, m);
    return to;
}

static void explain_collectives(const struct machine *to, const struct comm *comm, const struct measured *m)
{
    for (int i = 0; m->links && i < m->whole.n; i++) {
        const struct measured_collective *c = &m->whole.collective[i];
        if (c->kind)
            explain("%s of %lld bytes: %.2f us, the profile says %.2f", collective_name(c->kind), (long long)c->bytes, 1e6 * c->seconds,
                    1e6 * model_of(to, comm, c));
    }
}

/* The factor and unit with which a number is printed. */
static const struct {
    double scale;
    const char *words;
} shown[] = {
    [PRICE_OPERATIONS] = {1e-9, " GF/s"}, [PRICE_BYTES] = {1e-9, " GB/s"}, [PRICE_SECONDS] = {1e9, " ns"},
    [PRICE_SPEED] = {1, " times flops"},  [PRICE_LANES] = {1, ""},
};

static void print_price(const char *key, enum price_unit unit, double alone)
{
    printf("%-18s %.3g%s", key, shown[unit].scale * alone, shown[unit].words);
}

static void print_prices(const struct machine *to, int ranks)
{
#define PRICE(key, unit, ...)         \
    print_price(#key, unit, to->key); \
    putchar('\n');
#define SHARED(key, unit, ...)        \
    print_price(#key, unit, to->key); \
    printf(ranks > 1 ? " on one rank, %.3g on %d\n" : "\n", shown[unit].scale * to->machine_##key, ranks);
#include "schemas/prices.def"
}

static void print_link(const struct link *link, bool outer)
{
    printf(outer ? "collectives between machines: " : "collectives: ");
    printf("%.2f us each, %.2f us a hop, %.2f GB/s sent, ", 1e6 * link->overhead, 1e6 * link->latency, 1e-9 * link->bandwidth);
    if (outer)
        printf("%.2f GB/s by the %g ranks of a machine, ", 1e-9 * link->unit_bandwidth, link->ranks);
    printf("%.3f ns for each byte summed\n", 1e9 * link->reduce_seconds);
}

#define PAYS 1.25 /* speedup from which the user is told */

static void print_summary(const struct machine *to, const struct comm *comm, const struct measured *m, double error)
{
    print_prices(to, comm->local_size);
    for (int r = 0; r < to->speeds; r++)
        printf("%s%.3g%s", r ? ", " : "speeds of the ranks: ", to->speed[r], r + 1 < to->speeds ? "" : " times these\n");
    for (int r = 0; r < to->memories; r++)
        printf("%s%.3g GB%s", r ? ", " : "memory of the ranks: ", 1e-9 * (double)to->memory[r], r + 1 < to->memories ? "" : "\n");
    if (to->bf16_speed >= PRICE_TOLD)
        printf("products in bf16 take %.0f %% of the time of f32: tpc-run --fast, tpc-shard --weights bf16 (docs/precision.md)\n",
               100 / to->bf16_speed);
    printf("sums rounded for messages: %.3f ns for each byte in bf16, %.3f in q8\n", 1e9 * to->bf16_seconds, 1e9 * to->q8_seconds);
    if (!m->links)
        return;
    for (int i = 0; i < to->levels; i++)
        print_link(&to->level[i], i > 0);
    printf("collectives of all ranks: off by %.0f%% (root mean square)\n", 100 * error);
    if (to->overlap_overhead > 0)
        printf("an overlapped sum takes %.2f times as long as alone, and delays the work by %.0f us and %.0f%% of its time alone\n",
               to->overlap_slowdown, 1e6 * to->overlap_overhead, 100 * to->overlap_share);
}

/* The keys of clamped prices; "": none. */
static const char *clamped_keys(struct arena *a, const struct measured *m)
{
    static const char *const key[PRICES] = {
#define PRICE(key, ...) [PRICE_OF_##key] = #key,
#define SHARED(key, ...) PRICE(key, )
#include "schemas/prices.def"
    };
    const char *list = "";
    for (int k = 0; k < PRICES; k++)
        if (m->price[k].clamped)
            list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", key[k]);
    return list;
}

static void tell_doubts(struct arena *a, const char *path, const struct measured *m, double error)
{
    const double poor = 0.4;
    const char *clamped = clamped_keys(a, m);
    if (*clamped)
        diag_tell("%s: %s could not be told apart from what else was measured with it, and is a guess: repeat it on a quiet machine", path,
                  clamped);
    if (m->links && error > poor)
        diag_tell("%s: messages of these sizes do not take what a latency and a bandwidth say, so plans may not be the best ones: measure "
                  "again, on machines that do nothing else, and compare with --doctor",
                  path);
    if (m->busy > MACHINE_DISTURBED)
        diag_tell(
            "%s was written, but a rank waited %.0f%% of the time for a core: other programs used the cores while it was measured, or "
            "there are more ranks than cores. Repeat it on a quiet machine",
            path, 100 * m->busy);
}

static void tell_next(const struct comm *comm, const char *what)
{
    if (comm->rank == 0)
        diag_tell("measuring %s ..", what);
}

struct fusing {
    struct comm *comm;
    const struct job_options *options;
};

static void fuse_measured(void *of, struct graph *g)
{
    const struct fusing *f = of;
    job_fuse(g, f->comm, f->options);
}

/* Default of --seconds. An idle machine needs a third. */
enum { USUAL_SECONDS = 60 };

void job_calibrate(struct arena *a, struct comm *comm, const struct job_options *o, int threads)
{
    struct out file;
    struct measured m = {.busy = 0};
    struct fusing fusing = {comm, o};
    const double seconds = (double)(o->seconds ? o->seconds : USUAL_SECONDS);
    double error;
    if (comm->rank == 0)
        out_open_whole(a, &file, o->calibrate);
    tell_next(comm, "memory");
    struct measuring *x = measure_begin(a, comm, threads, seconds, fuse_measured, &fusing);
    tell_next(comm, "kernels");
    measure_prices(x);
    if (comm->size > 1)
        tell_next(comm, "collectives");
    measure_comm(a, comm, &m);
    if (!measure_is_late(x)) {
        tell_next(comm, "kernels again, for other load on the machine may have ended");
        measure_prices(x);
    }
    measure_end(a, x, &m);
    if (comm->rank)
        return;
    struct machine to = machine_of(a, o->calibrate, comm, &m, &error);
    const char *library = comm_mpi_library();
    char *text = machine_json(a, &to,
                              &(struct machine_origin){.date = today(a),
                                                       .library = library ? library : "",
                                                       .communicator = comm->kind,
                                                       .cores = cores_of_machine(),
                                                       .ranks = comm->size,
                                                       .threads = threads,
                                                       .fit_error = error});
    out_put(&file, text, strlen(text));
    (void)out_close(&file);
    explain_collectives(&to, comm, &m);
    if (!o->quiet)
        print_summary(&to, comm, &m, error);
    tell_doubts(a, o->calibrate, &m, error);
}
