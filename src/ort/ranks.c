/* ranks: this process as a rank of its MPI job, as long as it lives.
 *
 * ONNX Runtime creates and destroys sessions, and chooses its own order of nodes. So ranks compare each collective's attributes when it
 * first runs, and number it; later they compare only the number. At the end they wait for each other: a rank that ends while another waits
 * for it is out of step, too. */
#include "ort/ort.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { AT_END = 1, FIRST_NUMBER = 2, LINE_BYTES = 504 }; /* numbers; 0: a comparison */

static struct {
    pthread_mutex_t lock;
    struct scope *scope; /* NULL: not joined */
    struct comm *comm;
    struct buffer scratch;
    int64_t numbers;
} job = {.lock = PTHREAD_MUTEX_INITIALIZER, .numbers = FIRST_NUMBER};

/* ---- the end ---- */

static void end_together(void *unused)
{
    struct comm *c = job.comm;
    char bytes[2] = "";
    (void)unused;
    if (!comm_mpi_lives())
        return;
    c->id = AT_END;
    c->name = "the end of its program";
    for (int r = 0; r < c->size; r++) {
        c->send[r] = (struct block){&bytes[0], r != c->rank};
        c->recv[r] = (struct block){&bytes[1], r != c->rank};
    }
    c->exchange(c, c->send, c->recv, c->seen);
    c->done(c);
    c->free(c);
}

static void leave_job(void)
{
    if (!scope_failed(job.scope))
        (void)scope_do(job.scope, end_together, NULL);
}

/* ---- work ---- */

static void join_job(void *unused)
{
    (void)unused;
    job.comm = comm_mpi(NULL, NULL);
    if (!job.comm || atexit(leave_job) != 0)
        fail("this process can't join an MPI job");
}

bool ranks_join(void)
{
    pthread_mutex_lock(&job.lock);
    if (!job.scope && (job.scope = scope_new()) != NULL)
        (void)scope_do(job.scope, join_job, NULL);
    bool joined = job.scope && !scope_failed(job.scope);
    pthread_mutex_unlock(&job.lock);
    return joined;
}

struct order {
    void (*work)(struct comm *, void *);
    void *data;
};

static void do_order(void *order)
{
    const struct order *o = order;
    o->work(job.comm, o->data);
}

bool ranks_do(void (*work)(struct comm *, void *), void *data)
{
    pthread_mutex_lock(&job.lock);
    bool done = !scope_failed(job.scope) && scope_do(job.scope, do_order, &(struct order){work, data});
    pthread_mutex_unlock(&job.lock);
    return done;
}

const char *ranks_error(void)
{
    return job.scope ? scope_sentence(job.scope) : "out of memory";
}

struct rank_of ranks_own(void)
{
    return (struct rank_of){job.comm->rank, job.comm->size};
}

struct buffer *ranks_scratch(void)
{
    return &job.scratch;
}

/* ---- agreement ---- */

struct said {
    uint64_t hash; /* of the whole line */
    char line[LINE_BYTES];
};

int64_t ranks_agree(struct comm *comm, struct arena *a, const char *line)
{
    struct said own = {.hash = XXH3_64bits(line, strlen(line))};
    (void)snprintf(own.line, sizeof own.line, "%s", line);
    const struct said *all = comm_gather(comm, a, own.line, &own, sizeof own);
    for (int r = 0; r < comm->size; r++)
        if (all[r].hash != own.hash)
            fail("ranks are out of step: rank %d is at %.*s, rank %d at %.*s", comm->rank, LINE_BYTES, own.line, r, LINE_BYTES,
                 all[r].line);
    return job.numbers++;
}
