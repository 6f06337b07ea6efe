/* rows: what src/op/analysis/batch_independence.c calls independent is run in parts, by what tpc-run --groups does. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "tests/prove/private.h"

#include <string.h>

enum { GROUPS = 2 };

struct job {
    const struct prove *prove;
    const char *symbol;
    int set;
    bool exact;
    struct proof *out;
};

/* Each group is one rank and reads the model by itself. */
static void run_group(struct comm *comm, void *data)
{
    const struct job *job = data;
    struct arena *a = arena_new();
    const struct job_options o = {.groups = GROUPS, .batch_symbol = job->symbol};
    struct replicas t = replica_form(comm, &o);
    struct graph *g = job_load_model(a, job->prove->path, NULL, NULL, &o);
    job_fuse(g, t.process_group, &o);
    struct session *s = session_new(g, t.process_group, (struct session_options){.threads = 1});
    struct tensor *in = prove_inputs(a, job->prove, job->set, g), *out = NEWN(a, struct tensor, g->outputs.n);
    struct batch_shard d = replica_shard_batch(&t, g, s, in);
    replica_take_rows(a, &d, g, s, in);
    if (replica_runs(&t, &d))
        session_run(s, in, out);
    for (int i = 0; i < g->outputs.n; i++)
        out[i] = replica_gather_output(a, &t, &d, session_output_type(s, i), g->outputs.at[i]->name, &out[i]);
    if (comm->rank == 0)
        prove_compare(job->prove, job->set, job->exact, g, out, job->out);
    replica_leave(&t);
    session_free(s);
    arena_free(a);
}

static void try_rows(void *data, struct proof *out)
{
    struct job *job = data;
    job->out = out;
    comm_local_run(GROUPS, run_group, job);
}

struct proof prove_rows(struct prove *p, int set, bool exact, int *tried)
{
    struct arena *tmp = arena_new();
    struct proof out = {.kind = PROOF_EQUAL};
    const struct graph *g = p->compile.graph;
    require(set >= 0 && set < p->sets.n);
    op_note_rows(p->compile.graph);
    const char *symbol, *why;
    for (int i = 0; out.kind == PROOF_EQUAL && rank_meta_rows(g, i, &symbol, &why); i++) {
        if (why)
            continue;
        struct job job = {.prove = p, .symbol = symbol, .set = set, .exact = exact};
        prove_apart(tmp, try_rows, &job, &out);
        ++*tried;
    }
    arena_free(tmp);
    return out;
}
