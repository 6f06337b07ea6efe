/* times: a run that is timed, and what --profile and --trace tell of it. */
#include "job/job.h"
#include "job/timing/timing.h"

double job_timed_run(struct comm *all, struct session *s, const struct tensor *in, struct tensor *out, bool runs)
{
    all->barrier(all);
    double start = clock_seconds();
    if (runs)
        session_run(s, in, out);
    all->barrier(all);
    return clock_seconds() - start;
}

void job_tell_times(struct arena *a, struct comm *all, struct session *s, const char *folder, const struct job_options *o)
{
    json_t *plan = all->rank == 0 && (o->profile || o->trace) ? trace_plan(a, folder) : NULL;
    if (o->profile && all->rank == 0)
        profile_print(a, s, plan);
    if (o->trace)
        trace_write(a, all, s, plan, o->trace);
    json_decref(plan);
}
