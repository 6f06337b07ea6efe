/* doctor: one screen about a job before any model: where ranks run, with which cores and memory, how fast memory and messages are, and what
 * to change (tpc-run --doctor). Every rank sends its facts to rank 0, which prints. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "job/job.h"
#include "run/measure/measure.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT = 64, TRIAD_BYTES = 192 << 20, SHORT = 8, LONG = 4 << 20, MOST_PAIRS = 16, MOST_CORES = CPU_SETSIZE };
static const double mib = 1048576, gib = 1073741824;

struct rank_facts {
    char host[TEXT], cpus[TEXT], limit[TEXT];
    cpu_set_t set;
    int online, cores, bound, threads, nodes; /* cores: those online that a quota allows; nodes: NUMA nodes of its cores */
    int64_t memory, mapped;                   /* free bytes; what the process's limits leave */
    int64_t stack, locked, files;
    double load, triad, quota; /* of cores; INFINITY: none */
};
struct checkup {
    struct arena *arena;
    struct comm *comm;
    const struct rank_facts *of; /* by rank */
    double latency[MOST_PAIRS], bandwidth[MOST_PAIRS], sum_short, sum_long;
    int pairs; /* of rank 0 and 1, 2, .. */
    int advices;
};

/* ---- the facts of one rank ---- */

/* "0-3,8" */
static void write_cpus(const cpu_set_t *set, char *text)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < MOST_CORES && used < TEXT; i++) {
        if (!CPU_ISSET((size_t)i, set))
            continue;
        int to = i;
        while (to + 1 < MOST_CORES && CPU_ISSET((size_t)to + 1, set))
            to++;
        int n = to == i ? snprintf(text + used, TEXT - used, "%s%d", used ? "," : "", i)
                        : snprintf(text + used, TEXT - used, "%s%d-%d", used ? "," : "", i, to);
        used += n > 0 ? (size_t)n : 0;
        i = to;
    }
}

static int count_nodes(const cpu_set_t *set)
{
    char path[TEXT];
    int found = 0;
    for (int node = 0; node < 64; node++) {
        bool used = false;
        for (int i = 0; i < MOST_CORES && !used; i++) {
            (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpu%d", node, i);
            used = CPU_ISSET((size_t)i, set) && path_exists(path);
        }
        found += used;
    }
    return found > 0 ? found : 1;
}

/* A limit from getrlimit, if the call succeeded. */
static int64_t limit_of(int status, const struct rlimit *r)
{
    return status != 0 || r->rlim_cur == RLIM_INFINITY || r->rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)r->rlim_cur;
}

static struct rank_facts facts_of(struct comm *comm, int threads)
{
    struct rank_facts f = {
        .online = cores_online(), .cores = cores_of_machine(), .threads = threads, .quota = cores_quota(&control_system)};
    const struct available memory = available_memory(), addresses = available_addresses(), data = available_data();
    struct rlimit r;
    (void)gethostname(f.host, sizeof f.host - 1);
    if (sched_getaffinity(0, sizeof f.set, &f.set) != 0)
        CPU_ZERO(&f.set);
    f.bound = CPU_COUNT(&f.set);
    write_cpus(&f.set, f.cpus);
    f.nodes = count_nodes(&f.set);
    f.memory = memory.bytes;
    (void)snprintf(f.limit, sizeof f.limit, "%s", memory.limit);
    f.mapped = addresses.bytes < data.bytes ? addresses.bytes : data.bytes;
    f.stack = limit_of(getrlimit(RLIMIT_STACK, &r), &r);
    f.locked = limit_of(getrlimit(RLIMIT_MEMLOCK, &r), &r);
    f.files = limit_of(getrlimit(RLIMIT_NOFILE, &r), &r);
    (void)getloadavg(&f.load, 1);
    int64_t room = f.memory / (8 * comm->local_size);
    f.triad = measure_triad(comm, threads, room < TRIAD_BYTES ? room : TRIAD_BYTES);
    return f;
}

static void measure_links(struct checkup *c)
{
    c->pairs = c->comm->size - 1 < MOST_PAIRS ? c->comm->size - 1 : MOST_PAIRS;
    for (int i = 0; i < c->pairs; i++) {
        c->latency[i] = measure_pair(c->arena, c->comm, i + 1, SHORT, 50);
        c->bandwidth[i] = LONG / measure_pair(c->arena, c->comm, i + 1, LONG, 3);
    }
    if (!c->pairs)
        return;
    c->sum_short = measure_sum(c->arena, c->comm, SHORT, 50);
    c->sum_long = measure_sum(c->arena, c->comm, LONG, 3);
}

/* ---- what rank 0 prints ---- */

static bool same_host(const struct checkup *c, int r, int k)
{
    return strcmp(c->of[r].host, c->of[k].host) == 0;
}

static bool is_first_of_host(const struct checkup *c, int r)
{
    for (int k = 0; k < r; k++)
        if (same_host(c, r, k))
            return false;
    return true;
}

static int count_hosts(const struct checkup *c)
{
    int n = 0;
    for (int r = 0; r < c->comm->size; r++)
        n += is_first_of_host(c, r);
    return n;
}

/* Over the ranks of r's host. */
struct host_sums {
    int ranks, threads, bound, cores; /* bound: cores that some rank may use; cores: these, limited by a quota */
    bool shares;                      /* bound ranks share cores */
    double triad;
};

static struct host_sums sum_host(const struct checkup *c, int r)
{
    struct host_sums s = {0};
    cpu_set_t all;
    int bound = 0;
    CPU_ZERO(&all);
    for (int k = 0; k < c->comm->size; k++) {
        if (!same_host(c, r, k))
            continue;
        s.ranks++;
        s.threads += c->of[k].threads;
        s.triad += c->of[k].triad;
        bound += c->of[k].bound;
        CPU_OR(&all, &all, &c->of[k].set);
    }
    s.bound = CPU_COUNT(&all);
    s.cores = s.bound < c->of[r].cores ? s.bound : c->of[r].cores;
    s.shares = s.bound < bound && c->of[r].bound < c->of[r].online;
    return s;
}

static void print_start(const struct checkup *c, const char *launcher)
{
    const char *mpi = comm_mpi_library();
    int hosts = count_hosts(c);
    printf("tpc %s: %d rank%s on %d host%s, ", PACKAGE_VERSION, c->comm->size, c->comm->size == 1 ? "" : "s", hosts, hosts == 1 ? "" : "s");
    if (launcher)
        printf("processes of a launcher (%s)\n", launcher);
    else
        printf("threads of one process: no mpirun or srun started it\n");
    printf("MPI: %s\n", mpi ? mpi : "none, built without: ranks are threads");
}

static void print_hosts(const struct checkup *c)
{
    printf("\n%-20s %5s %9s %5s %-12s %7s %12s %15s\n", "host", "ranks", "cores", "NUMA", "bound to", "threads", "memory free", "triad");
    for (int r = 0; r < c->comm->size; r++) {
        const struct rank_facts *f = &c->of[r];
        const struct host_sums s = sum_host(c, r);
        bool alike = f->bound == f->online;
        if (alike && !is_first_of_host(c, r))
            continue;
        printf("%-20.20s %5d %9d %5d %-12.12s %7d %8.1f GiB %10.1f GB/s\n", f->host, alike ? s.ranks : 1, f->cores, f->nodes,
               alike ? "nothing" : f->cpus, alike ? s.threads : f->threads, (double)f->memory / gib, 1e-9 * (alike ? s.triad : f->triad));
    }
}

static void print_links(const struct checkup *c)
{
    int slow = 0, thin = 0;
    for (int i = 1; i < c->pairs; i++) {
        slow = c->latency[i] > c->latency[slow] ? i : slow;
        thin = c->bandwidth[i] < c->bandwidth[thin] ? i : thin;
    }
    printf("\nbetween ranks\n");
    printf("  %-20s %9.2f us    ranks 0 and %d, the slowest pair measured\n", "8 bytes both ways", 1e6 * c->latency[slow], slow + 1);
    printf("  %-20s %9.2f GB/s  ranks 0 and %d\n", "4 MiB both ways", 1e-9 * c->bandwidth[thin], thin + 1);
    printf("  %-20s %9.2f us    all ranks\n", "a sum of 8 bytes", 1e6 * c->sum_short);
    printf("  %-20s %9.2f ms    all ranks\n", "a sum of 4 MiB", 1e3 * c->sum_long);
}

static const char *size_text(struct arena *a, int64_t bytes)
{
    return bytes == INT64_MAX ? "unlimited" : arena_printf(a, "%.4g MiB", (double)bytes / mib);
}

static void print_limits(const struct checkup *c)
{
    const struct rank_facts *f = &c->of[0];
    printf("\nlimits of rank 0: stack %s, addresses left %s, locked memory %s, open files %lld\n", size_text(c->arena, f->stack),
           size_text(c->arena, f->mapped), size_text(c->arena, f->locked), (long long)f->files);
}

/* ---- advice ---- */

static __attribute__((format(printf, 2, 3))) void advise(struct checkup *c, const char *format, ...)
{
    va_list args;
    printf("%s  - ", c->advices++ ? "" : "\nadvice\n");
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void advise_cores(struct checkup *c, int r)
{
    const struct rank_facts *f = &c->of[r];
    const struct host_sums s = sum_host(c, r);
    if (s.ranks > s.cores)
        advise(c, "%s: %d ranks share %d cores: use fewer ranks, or do this only to try", f->host, s.ranks, s.cores);
    else if (s.threads > s.cores)
        advise(c, "%s: %d threads compute on %d cores: give --threads %d", f->host, s.threads, s.cores, s.cores / s.ranks);
    else if (2 * s.bound <= f->online)
        advise(c, "%s: its ranks are bound to %d of %d cores: mpirun --bind-to none (MPICH: -bind-to none), or name the cores", f->host,
               s.bound, f->online);
    if (f->quota < f->online)
        advise(c, "%s: its control group allows %.4g of %d cores (docker --cpus, limits.cpu of Kubernetes)", f->host, f->quota, f->online);
    if (s.shares && s.ranks <= s.cores)
        advise(c, "%s: ranks are bound to the same cores: start them with one mpirun, or bind each to its own", f->host);
    if (f->nodes > 1 && s.ranks < f->nodes)
        advise(c, "%s: a rank spans %d NUMA nodes: one rank per node keeps weights in local memory (--map-by ppr:1:numa --bind-to numa)",
               f->host, f->nodes);
    if (f->load > s.ranks + 0.25 * f->online)
        advise(c, "%s: its load is %.1f on %d cores: other work makes ranks wait for each other", f->host, f->load, f->online);
}

static void advise_memory(struct checkup *c, int r)
{
    const struct rank_facts *f = &c->of[r];
    if (strcmp(f->limit, "the machine") != 0 && f->memory != INT64_MAX)
        advise(c, "%s: memory is limited by %s: %.1f GiB are left", f->host, f->limit, (double)f->memory / gib);
    if (f->mapped != INT64_MAX)
        advise(c, "%s: ulimit -v or -d leaves %.1f GiB, and weights are mapped: ulimit -v unlimited", f->host, (double)f->mapped / gib);
    if (f->locked < 64 << 20 && count_hosts(c) > 1 && path_exists("/sys/class/infiniband"))
        advise(c, "%s: locked memory is limited to %s: InfiniBand needs ulimit -l unlimited", f->host, size_text(c->arena, f->locked));
}

static void advise_links(struct checkup *c)
{
    for (int i = 0; i < c->pairs; i++) {
        bool near = same_host(c, 0, i + 1);
        if (c->latency[i] > (near ? 50e-6 : 100e-6)) {
            advise(c,
                   near ? "ranks 0 and %d of one host need %.0f us for a message: cores are short, or busy"
                        : "ranks 0 and %d need %.0f us for a message: choose the faster network (docs: several machines)",
                   i + 1, 1e6 * c->latency[i]);
            return;
        }
    }
}

static void advise_balance(struct checkup *c)
{
    int slow = 0, fast = 0;
    for (int r = 1; r < c->comm->size; r++) {
        slow = c->of[r].triad < c->of[slow].triad ? r : slow;
        fast = c->of[r].triad > c->of[fast].triad ? r : fast;
    }
    if (c->of[slow].triad < 0.6 * c->of[fast].triad)
        advise(c, "rank %d on %s reads memory at %.1f GB/s, rank %d at %.1f: all ranks wait for the slowest", slow, c->of[slow].host,
               1e-9 * c->of[slow].triad, fast, 1e-9 * c->of[fast].triad);
}

static void print_advice(struct checkup *c)
{
    for (int r = 0; r < c->comm->size; r++)
        if (is_first_of_host(c, r)) {
            advise_cores(c, r);
            advise_memory(c, r);
        }
    advise_links(c);
    if (c->comm->unshared)
        advise(c, "ranks of this machine send messages, which is slower: %s", c->comm->unshared);
    advise_balance(c);
    if (!comm_mpi_library())
        advise(c, "several hosts need MPI: build with it (apt-get install libopenmpi-dev, or libmpich-dev)");
    if (!c->advices)
        printf("\nnothing to mend\n");
    printf("next: tpc-run --calibrate FILE measures this job for tpc-shard --machine FILE\n");
}

void job_doctor(struct arena *a, struct comm *comm, const char *launcher, int threads)
{
    struct checkup c = {.arena = a, .comm = comm};
    const struct rank_facts own = facts_of(comm, threads);
    c.of = comm_gather(comm, a, "facts of all ranks", &own, sizeof(struct rank_facts));
    measure_links(&c);
    if (comm->rank)
        return;
    print_start(&c, launcher);
    print_hosts(&c);
    if (c.pairs)
        print_links(&c);
    print_limits(&c);
    print_advice(&c);
}
