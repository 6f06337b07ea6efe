/* run_report: what tpc-run prints: outputs (files or digests), times, and where the time and the bytes went. */
#include "cli/run.h"

#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "onnx/onnx.h"

char *dims_str(struct arena *a, const struct tensor *t)
{
    char *text = arena_printf(a, "%s[", dtype_name(t->dtype));
    for (int k = 0; k < t->rank; k++) text = arena_printf(a, "%s%s%lld", text, k ? ", " : "", (long long)t->dim[k]);
    return arena_printf(a, "%s]", text);
}

/* A tensor name as a file name: '/' and control characters become '_'. */
static char *file_name(struct arena *a, const char *name)
{
    char *file = arena_printf(a, "%s.npy", name);
    for (char *c = file; *c; c++)
        if (*c == '/' || (unsigned char)*c < 0x20) *c = '_';
    return file;
}

void report_outputs(struct arena *a, const struct graph *g, const struct tensor *outputs, const char *folder)
{
    if (folder && mkdir(folder, 0777) && errno != EEXIST) fail("%s: %s", folder, strerror(errno));
    for (int i = 0; i < g->outputs.n; i++) {
        const struct tensor *t = &outputs[i];
        if (folder) tensor_write_npy(path_join(a, folder, file_name(a, g->outputs.at[i]->name)), t);
        else printf("%s %s xxh3:%016llx\n", g->outputs.at[i]->name, dims_str(a, t), (unsigned long long)XXH3_64bits(t->data, tensor_bytes(t)));
    }
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

void report_times(const double *seconds, int64_t n)
{
    if (n < 2) {
        printf("time: %.3f ms\n", 1e3 * seconds[0]);
        return;
    }
    struct arena *a = arena_new();
    double *rest = NEWN(a, double, n - 1);
    memcpy(rest, seconds + 1, (size_t)(n - 1) * sizeof *rest);
    qsort(rest, (size_t)(n - 1), sizeof *rest, by_value);
    printf("time: first %.3f ms, then min %.3f, median %.3f, max %.3f ms in %lld runs\n", 1e3 * seconds[0], 1e3 * rest[0], 1e3 * rest[(n - 1) / 2],
           1e3 * rest[n - 2], (long long)n - 1);
    arena_free(a);
}

static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long long total = 0, resident = 0;
    if (!f) return 0;
    if (fscanf(f, "%lld %lld", &total, &resident) != 2) resident = 0;
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

static int64_t peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (int64_t)usage.ru_maxrss * 1024;
}

struct figures { double compute, comm; int64_t bytes, resident, peak, slab, weights, state, moved; };

static void print_rank(int rank, const struct figures *f)
{
    printf("rank %d: compute %.3f ms, communication %.3f ms, %lld bytes sent per run; %.1f MiB resident (peak %.1f), weights %.3f MiB, activations %.3f MiB\n", rank,
           1e3 * f->compute, 1e3 * f->comm, (long long)f->bytes, (double)f->resident / 1048576, (double)f->peak / 1048576,
           (double)f->weights / 1048576, (double)f->slab / 1048576);
    if (f->state) printf("rank %d: state %.1f MiB, %lld bytes of it copied to grow\n", rank, (double)f->state / 1048576, (long long)f->moved);
}

static struct figures *gather_figures(struct arena *a, struct comm *comm, const struct session_stats *s)
{
    struct figures *all = NEWN(a, struct figures, comm->size), *own = &all[comm->rank];
    double runs = s->runs ? (double)s->runs : 1;
    int64_t *bytes = NEWN(a, int64_t, comm->size);
    *own = (struct figures){(s->seconds - s->comm_seconds) / runs, s->comm_seconds / runs, 0, resident_bytes(), peak_bytes(), s->slab_bytes, s->weight_bytes, s->state_bytes, s->state_moved};
    for (int i = 0; i < s->ncollective; i++) own->bytes += s->collective[i].bytes;
    own->bytes /= s->runs ? s->runs : 1;
    for (int r = 0; r < comm->size; r++) bytes[r] = sizeof *own;
    comm->id = 0;
    comm->name = "statistics";
    comm->allgatherv(comm, all, bytes);
    return all;
}

/* As --workload takes them. */
static void print_sizes(const struct bindings *b)
{
    for (int i = 0; i < b->list.n; i++) printf("%s%s=%lld", i ? "," : "sizes: ", b->list.at[i].name, (long long)b->list.at[i].value);
    if (b->list.n) printf("\n");
}

void report_collective(int number, const struct session_collective *c)
{
    int64_t calls = c->calls ? c->calls : 1;
    printf("collective %d %s '%s': %lld bytes, %.3f ms\n", number, c->op, c->name, (long long)(c->bytes / calls), 1e3 * c->seconds / (double)calls);
}

/* Bytes of all its ranks, times of the slowest. */
static struct figures figures_of(const struct figures *rank, int n)
{
    struct figures sum = {0};
    for (int r = 0; r < n; r++) {
        if (rank[r].compute > sum.compute) sum.compute = rank[r].compute;
        if (rank[r].comm > sum.comm) sum.comm = rank[r].comm;
        sum.bytes += rank[r].bytes;
        sum.slab += rank[r].slab;
        sum.weights += rank[r].weights;
        sum.state += rank[r].state;
    }
    return sum;
}

static void print_group(const struct team *t, const struct dealt *d, int group, const struct figures *all)
{
    int n = t->own->size, first = group * n;
    const struct figures f = figures_of(&all[first], n);
    struct rows rows = rows_deal(d->total, t->groups, group);
    printf("group %d: ranks %d to %d, %lld of %lld rows of '%s': compute %.3f ms, communication %.3f ms, %lld bytes sent per run; weights %.3f MiB, state %.1f MiB, activations %.3f MiB\n",
           group, first, first + n - 1, (long long)rows.count, (long long)d->total, d->symbol, 1e3 * f.compute, 1e3 * f.comm, (long long)f.bytes,
           (double)f.weights / 1048576, (double)f.state / 1048576, (double)f.slab / 1048576);
}

void report_stats(struct arena *a, const struct team *team, const struct dealt *dealt, struct session *session)
{
    const struct session_stats *s = session_stats(session);
    struct figures *all = gather_figures(a, team->all, s);
    if (team->all->rank) return;
    print_sizes(session_sizes(session));
    for (int r = 0; r < team->all->size; r++) print_rank(r, &all[r]);
    for (int i = 0; team->across && i < team->groups; i++) print_group(team, dealt, i, all);
    for (int i = 0; i < s->ncollective; i++) report_collective(i + 1, &s->collective[i]);
}
