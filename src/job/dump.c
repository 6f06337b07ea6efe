/* dump: the lowered graphs of all ranks in text form (--dump-after). */
#include "ir/text/text.h"
#include "job/job.h"

void job_dump_graph(struct arena *a, const struct replicas *t, const struct graph *g)
{
    struct captured own;
    int64_t *bytes;
    captured_begin(&own);
    graph_print(g, own.to);
    const char *all = comm_gather_texts(t->process_group, a, "graphs in text form", captured_end(&own, a), &bytes);
    if (t->all->rank == 0)
        fputs(all, stdout);
}

void job_dump(struct arena *a, const struct replicas *t, const struct job_options *o)
{
    struct graph *g = job_load(a, t->process_group, o->paths.text.at[0], o);
    job_fuse(g, t->process_group, o);
    job_dump_graph(a, t, g);
}
