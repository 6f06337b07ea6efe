/* calibrate: measures the ranks that run and writes the machine profile of tpc-shard --machine (--calibrate FILE). */
#include "job/job.h"
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

/* The name of the file without folder and extension. */
static const char *profile_name(struct arena *a, const char *path)
{
    const char *base = path_base(path), *dot = strrchr(base, '.');
    return dot && dot > base ? arena_strndup(a, base, (size_t)(dot - base)) : base;
}

/* A vector has a power of two of numbers: so many channels take no longer than one. */
static double lanes_of(const struct measured *m)
{
    double lanes = 1;
    while (lanes < MEASURED_CHANNELS && lanes * M_SQRT2 < MEASURED_CHANNELS * m->of_one / m->of_many)
        lanes *= 2;
    return lanes;
}

static_assert((int)PASS_SIZES == (int)MEASURED_PASSES && (int)PASS_LEAST == (int)MEASURED_PASS &&
                  (int)PASS_GROWTH == (int)MEASURED_PASS_GROWTH,
              "sizes that are measured");

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

/* Values that are not measured come from the reference: the price of a resident byte and, on one rank, the collectives. */
static struct machine machine_of(struct arena *a, const char *path, const struct comm *comm, const struct measured *m, double *error)
{
    struct machine to = machine_reference();
    struct timed_transfer *timed = NEWN(a, struct timed_transfer, m->ncollective);
    to.name = profile_name(a, path);
    to.flops = m->flops;
    to.memory_bandwidth = m->memory;
    to.machine_ranks = comm->local_size;
    to.machine_flops = comm->local_size * m->flops_together;
    to.machine_memory_bandwidth = comm->local_size * m->memory_together;
    to.half_bandwidth = m->halves;
    to.machine_half_bandwidth = comm->local_size * m->halves_together;
    to.code_bandwidth = m->codes;
    to.machine_code_bandwidth = comm->local_size * m->codes_together;
    to.byte_bandwidth = m->bytes;
    to.machine_byte_bandwidth = comm->local_size * m->bytes_together;
    to.node_overhead = m->node;
    to.elementwise_share = m->chain * m->pass[1];
    memcpy(to.pass_bandwidth, m->pass, sizeof to.pass_bandwidth);
    to.function_seconds = m->function;
    to.erf_seconds = m->erf;
    to.column_seconds = m->column;
    to.code_seconds = m->code;
    to.sum_seconds = m->sum;
    to.conv_speed = m->conv / m->flops;
    to.depthwise_speed = m->depthwise / m->flops;
    to.integer_conv_speed = m->integer_conv / m->flops;
    to.integer_depthwise_speed = m->integer_depthwise / m->flops;
    to.conv_overhead = fmax(m->small_convs - m->no_convs, m->node);
    to.row_seconds = m->row;
    to.repeat_seconds = m->repeat;
    to.turn_seconds = m->turn;
    to.vector_lanes = lanes_of(m);
    to.bf16_seconds = m->bf16;
    to.q8_seconds = m->q8;
    to.integer_speed = m->integers / m->flops;
    for (int i = 0; i < m->ncollective; i++)
        timed[i] = (struct timed_transfer){m->collective[i].kind, (double)m->collective[i].bytes, m->collective[i].seconds};
    *error = calibrate_fit(&to, comm->size, m->ncollective, timed);
    if (m->ncollective)
        fit_overlap(&to, m);
    return to;
}

static void explain_collectives(const struct machine *to, const struct comm *comm, const struct measured *m)
{
    for (int i = 0; i < m->ncollective; i++) {
        const struct measured_collective *c = &m->collective[i];
        if (c->kind == COLL_NONE)
            continue;
        double model = collective_seconds(to, collective_transfer(to, c->kind, WIRE_F32, comm->size, (double)c->bytes));
        explain("%s of %lld bytes: %.2f us, the profile says %.2f", collective_name(c->kind), (long long)c->bytes, 1e6 * c->seconds,
                1e6 * model);
    }
}

/* Prints "226.1 GF/s on one rank, 431.0 on 2". */
static void print_rate_on_ranks(const char *what, const char *unit, double alone, double machine, int ranks)
{
    printf("%s: %.1f %s on one rank", what, 1e-9 * alone, unit);
    if (ranks > 1)
        printf(", %.1f on %d", 1e-9 * machine, ranks);
    putchar('\n');
}

static void print_summary(const struct machine *to, const struct comm *comm, const struct measured *m, double error)
{
    print_rate_on_ranks("products", "GF/s", to->flops, to->machine_flops, comm->local_size);
    print_rate_on_ranks("weights from memory", "GB/s", to->memory_bandwidth, to->machine_memory_bandwidth, comm->local_size);
    print_rate_on_ranks("weights of bf16 from memory", "GB/s", to->half_bandwidth, to->machine_half_bandwidth, comm->local_size);
    print_rate_on_ranks("weights of 8 bits from memory", "GB/s", to->byte_bandwidth, to->machine_byte_bandwidth, comm->local_size);
    print_rate_on_ranks("weights of 4 bits from memory", "GB/s", to->code_bandwidth, to->machine_code_bandwidth, comm->local_size);
    printf("elementwise: %.1f GB/s of 1 MiB, %.1f of 64, %.2f of it in chains; a node: %.2f us, a convolution: %.2f\n",
           1e-9 * to->pass_bandwidth[0], 1e-9 * to->pass_bandwidth[PASS_SIZES - 1], to->elementwise_share, 1e6 * to->node_overhead,
           1e6 * to->conv_overhead);
    printf("functions: %.2f ns, Erf: %.2f, Softmax of columns: %.1f; 8-bit codes: %.2f ns, sums of their products %.2f; vectors of %.0f\n",
           1e9 * to->function_seconds, 1e9 * to->erf_seconds, 1e9 * to->column_seconds, 1e9 * to->code_seconds, 1e9 * to->sum_seconds,
           to->vector_lanes);
    printf("rows: copied %.2f ns, repeated %.2f; a number turned: %.2f\n", 1e9 * to->row_seconds, 1e9 * to->repeat_seconds,
           1e9 * to->turn_seconds);
    printf("times as fast as products: weights of 4 bits %.2f; convolutions %.2f, depthwise %.2f; of integers %.2f, depthwise %.2f\n",
           to->integer_speed, to->conv_speed, to->depthwise_speed, to->integer_conv_speed, to->integer_depthwise_speed);
    printf("sums rounded for messages: %.3f ns for each byte in bf16, %.3f in q8\n", 1e9 * to->bf16_seconds, 1e9 * to->q8_seconds);
    if (!m->ncollective)
        return;
    printf("collectives: %.2f us each, %.2f us a hop, %.2f GB/s sent, %.3f ns for each byte summed; off by %.0f%% (root mean square)\n",
           1e6 * to->collective_overhead, 1e6 * to->hop_latency, 1e-9 * to->link_bandwidth, 1e9 * to->reduce_seconds, 100 * error);
    if (to->overlap_overhead > 0)
        printf("a sum behind work takes %.2f times as long as alone, and delays the work by %.0f us and %.0f%% of its time alone\n",
               to->overlap_slowdown, 1e6 * to->overlap_overhead, 100 * to->overlap_share);
}

static void tell_doubts(const char *path, const struct measured *m, double error)
{
    const double poor = 0.4;
    if (m->ncollective && error > poor)
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

static void measure_again(struct measuring *x, const struct comm *comm, struct measured *m)
{
    tell_next(comm, "products again, for other load on the machine may have ended");
    measure_work(x, m);
    tell_next(comm, "operators again");
    measure_nodes(x, m);
    tell_next(comm, "convolutions again");
    measure_convs(x, m);
}

/* Of --seconds. A machine that does nothing else needs a third. */
enum { USUAL_SECONDS = 60 };

void job_calibrate(struct arena *a, struct comm *comm, const struct job_options *o, int threads)
{
    struct out file;
    struct measured m = {0};
    double error;
    if (comm->rank == 0)
        out_open_whole(a, &file, o->calibrate);
    tell_next(comm, "memory");
    struct measuring *x = measure_begin(a, comm, threads, (double)(o->seconds ? o->seconds : USUAL_SECONDS));
    tell_next(comm, "products");
    measure_work(x, &m);
    tell_next(comm, "operators");
    measure_nodes(x, &m);
    tell_next(comm, "convolutions");
    measure_convs(x, &m);
    if (comm->size > 1)
        tell_next(comm, "collectives");
    measure_comm(a, comm, &m);
    if (!measure_is_late(x))
        measure_again(x, comm, &m);
    measure_end(x, &m);
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
                                                       .fit_error = error,
                                                       .waited = m.busy});
    out_put(&file, text, strlen(text));
    (void)out_close(&file);
    explain_collectives(&to, comm, &m);
    if (!o->quiet)
        print_summary(&to, comm, &m, error);
    tell_doubts(o->calibrate, &m, error);
}
