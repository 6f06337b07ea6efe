/* measure_prices: times of kernels on one rank, and on all of a machine at once: schemas/prices.def has a graph for each price, run in a
 * session like a model. */
#include "run/measure/measure.h"
#include "run/measure/measure_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct measurement { /* fields as in prices.def */
    const char *graph;
    int rows, operands, few, many;
    double work, passed, coded;
    bool streams;
};
static const struct price_row {
    enum price_unit unit;
    bool shared;
    struct measurement by;
} prices[PRICES] = {
#define BY(...)     \
    {               \
        __VA_ARGS__ \
    }
#define PRICE(key, unit, reference, by, ...) [PRICE_OF_##key] = {unit, false, by},
#define SHARED(key, unit, reference, by, ...) [PRICE_OF_##key] = {unit, true, by},
#include "schemas/prices.def"
};
enum { MOST_SAMPLES = 256, MIB = 1 << 20 };
struct stream {
    struct work_bench bench;
    double *alone, *together; /* seconds of each sample */
};
struct measuring {
    struct comm *comm;
    void (*ready)(void *of, struct graph *);
    void *of;
    int threads, samples;
    struct stream stream[PRICES];                    /* of prices that are memory streams */
    struct measured_price few[PRICES], many[PRICES]; /* least seconds of other prices */
    double begin, seconds, waited;
};

/* ---- graphs ------------------------------------------------------------------------------------------------------------------ */

/* Appends text up to `end`, with its placeholders: * is n, $ is i, $+ the next, $++ the one after. Returns the text. */
static const char *append_text(struct arena *a, const char *to, const char *text, const char *end, int n, int i)
{
    while (text < end) {
        size_t plain = strcspn(text, "*$");
        const char *at = plain < (size_t)(end - text) ? text + plain : end;
        to = arena_printf(a, "%s%.*s", to, (int)(at - text), text);
        int next = at < end && at[0] == '$' ? (int)strspn(at + 1, "+") : 0;
        if (at < end)
            to = arena_printf(a, "%s%d", to, *at == '*' ? n : i + next);
        text = at + 1 + next;
    }
    return to;
}

/* The text with every <N: TEXT> repeated N times. */
static const char *repeat_text(struct arena *a, const char *text, int n)
{
    const char *to = "", *at;
    for (; (at = strchr(text, '<')) != NULL; text = strchr(at, '>') + 1) {
        const char *body = strchr(at, ':') + 1;
        int times = at[1] == '*' ? n : atoi(at + 1);
        to = append_text(a, to, text, at, n, 0);
        for (int i = 0; i < times; i++)
            to = append_text(a, to, body, strchr(at, '>'), n, i);
    }
    return append_text(a, to, text, text + strlen(text), n, 0);
}

static struct graph *price_graph(struct arena *a, const struct measuring *x, const struct measurement *by, int n)
{
    struct graph *g = measure_parse(a, repeat_text(a, by->graph, n));
    measure_weights(g, by->operands ? by->operands : 1);
    x->ready(x->of, g);
    return g;
}

static int64_t rows_of(const struct measurement *by)
{
    return by->rows ? by->rows : 1;
}

/* streams: memory bandwidth may change within seconds, with other users and, on a virtual machine, with the cores that run it. So it is
 * sampled between all other measurements, and medians of minimal times count */

/* The minimum of a few runs, as in a repeated step: an interruption is no property of memory. */
static double sample(const struct measuring *x, struct stream *s, bool alone)
{
    enum { RUNS = 5 };
    double least = 0;
    for (int i = 0; i < RUNS; i++)
        measure_keep_shorter(&least, measure_run(x->comm, &s->bench, alone));
    return least;
}

static void sample_streams(struct measuring *x)
{
    for (int k = 0; k < PRICES && x->samples < MOST_SAMPLES; k++) {
        struct stream *s = &x->stream[k];
        if (!prices[k].by.streams)
            continue;
        s->alone[x->samples] = sample(x, s, true);
        s->together[x->samples] = x->comm->size > 1 ? sample(x, s, false) : s->alone[x->samples];
    }
    x->samples += x->samples < MOST_SAMPLES;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const struct measuring *x, double *seconds)
{
    qsort(seconds, (size_t)x->samples, sizeof *seconds, compare_seconds);
    return seconds[x->samples / 2];
}

/* ---- prices ------------------------------------------------------------------------------------------------------------------ */

/* Subtracts the time that known prices explain. With other programs on the machine, that may be all of it: at least a tenth counts. */
static double own_seconds(const struct measured *m, const struct measurement *by, double seconds, bool *clamped)
{
    double rate = m->price[by->passed > 2 * MIB ? PRICE_OF_pass_bandwidth_4m : PRICE_OF_pass_bandwidth_1m].alone;
    double others = by->passed > 0 ? by->passed / rate : 0;
    others += by->coded > 0 ? by->coded * m->price[PRICE_OF_code_seconds].alone : 0;
    *clamped |= seconds - others < seconds / 10;
    return fmax(seconds - others, seconds / 10);
}

/* A vector has a power of two of numbers: up to that many channels take as long as one. */
static double lanes_of(const struct measurement *by, double few, double many)
{
    double lanes = 1;
    while (lanes < by->many && lanes * M_SQRT2 < by->many * few / many)
        lanes *= 2;
    return lanes;
}

/* If more nodes take no longer than few, their whole time counts. */
static double seconds_of_one(const struct measurement *by, double few, double many, bool *clamped)
{
    if (!by->many)
        return few;
    *clamped |= many <= few;
    return many > few ? (many - few) / (by->many - by->few) : many / by->many;
}

double measure_price(const struct measured *m, enum price price, double few, double many, bool *clamped)
{
    const struct price_row *row = &prices[price];
    const struct measurement *by = &row->by;
    if (row->unit == PRICE_LANES)
        return lanes_of(by, few, many);
    double seconds = own_seconds(m, by, seconds_of_one(by, few, many, clamped), clamped);
    switch (row->unit) {
    case PRICE_SECONDS: return seconds / by->work;
    case PRICE_SPEED: return by->work / seconds / m->price[PRICE_OF_flops].alone;
    default: return by->work / seconds;
    }
}

static void keep_shorter(struct measured_price *seconds, struct measured_price found)
{
    measure_keep_shorter(&seconds->alone, found.alone);
    measure_keep_shorter(&seconds->together, found.together);
    if (found.own > 0)
        measure_keep_shorter(&seconds->own, found.own);
}

/* In several rounds, with a sample of each stream after; once it is late, in one round without samples. */
static struct measured_price time_graph(struct measuring *x, const struct price_row *row, int n)
{
    enum { ROUNDS = 3 };
    struct arena *a = arena_new();
    bool late = measure_is_late(x);
    struct graph *g = price_graph(a, x, &row->by, n);
    struct measured_price t = measure_least(x->comm, g, x->threads, rows_of(&row->by), late ? 1 : ROUNDS, row->shared);
    arena_free(a);
    if (!late || x->samples == 0)
        sample_streams(x);
    return t;
}

/* ---- a measurement ----------------------------------------------------------------------------------------------------------- */

struct measuring *measure_begin(struct arena *a, struct comm *comm, int threads, double seconds, void (*ready)(void *of, struct graph *),
                                void *of)
{
    struct measuring *x = NEW(a, struct measuring);
    *x = (struct measuring){.comm = comm,
                            .ready = ready,
                            .of = of,
                            .threads = threads,
                            .begin = clock_seconds(),
                            .seconds = seconds,
                            .waited = measure_waited()};
    for (int k = 0; k < PRICES; k++) {
        const struct measurement *by = &prices[k].by;
        if (!by->streams)
            continue;
        x->stream[k] = (struct stream){measure_bench(price_graph(a, x, by, 0), threads), NEWN(a, double, MOST_SAMPLES),
                                       NEWN(a, double, MOST_SAMPLES)};
        measure_rows(&x->stream[k].bench, rows_of(by));
    }
    sample_streams(x); /* warms up */
    if (!measure_is_late(x))
        x->samples = 0;
    return x;
}

bool measure_is_late(const struct measuring *x)
{
    return comm_slowest(x->comm, clock_seconds() - x->begin) > x->seconds;
}

void measure_prices(struct measuring *x)
{
    for (int k = 0; k < PRICES; k++) {
        const struct measurement *by = &prices[k].by;
        if (by->streams)
            continue;
        keep_shorter(&x->few[k], time_graph(x, &prices[k], by->few));
        if (by->many)
            keep_shorter(&x->many[k], time_graph(x, &prices[k], by->many));
    }
}

/* ---- ranks -------------------------------------------------------------------------------------------------------------------------- */

/* Ranks that differ by less count as equal. */
static const double alike = 1.15;

/* This rank's speed relative to the slowest: by its machine's time for the same work. */
static double relative_speed(struct comm *comm, double own)
{
    double seconds = comm->host ? comm_slowest(comm->host, own) : own;
    return comm_slowest(comm, seconds) / seconds;
}

/* By products and by memory alike. */
static const double *speeds_of(struct arena *a, const struct measuring *x)
{
    if (x->comm->local_size == x->comm->size)
        return NULL;
    double products = relative_speed(x->comm, x->many[PRICE_OF_flops].own > 0 ? x->many[PRICE_OF_flops].own : x->few[PRICE_OF_flops].own);
    double memory = relative_speed(x->comm, x->stream[PRICE_OF_memory_bandwidth].bench.own), own = sqrt(products * memory);
    const double *speed = comm_gather(x->comm, a, "speeds of ranks", &own, sizeof own);
    for (int r = 0; r < x->comm->size; r++)
        if (speed[r] > alike)
            return speed;
    return NULL;
}

/* A machine's available memory, divided among its ranks. */
static const int64_t *memory_of_ranks(struct arena *a, struct comm *comm)
{
    int64_t own = available_memory().bytes / comm->local_size, least = INT64_MAX, most = 0;
    if (comm->local_size == comm->size)
        return NULL;
    const int64_t *memory = comm_gather(comm, a, "memory of ranks", &own, sizeof own);
    for (int r = 0; r < comm->size; r++) {
        least = memory[r] < least ? memory[r] : least;
        most = memory[r] > most ? memory[r] : most;
    }
    return least > 0 && (double)most > alike * (double)least ? memory : NULL;
}

void measure_end(struct arena *a, struct measuring *x, struct measured *m)
{
    m->speed = speeds_of(a, x);
    m->memory = memory_of_ranks(a, x->comm);
    for (int k = 0; k < PRICES; k++) {
        struct stream *s = &x->stream[k];
        if (prices[k].by.streams)
            x->few[k] = (struct measured_price){.alone = median(x, s->alone), .together = median(x, s->together)};
        bool *clamped = &m->price[k].clamped;
        m->price[k].alone = measure_price(m, (enum price)k, x->few[k].alone, x->many[k].alone, clamped);
        m->price[k].together = measure_price(m, (enum price)k, x->few[k].together, x->many[k].together, clamped);
        if (prices[k].by.streams)
            measure_bench_free(&s->bench);
    }
    m->busy = comm_slowest(x->comm, (measure_waited() - x->waited) / (clock_seconds() - x->begin));
}
