/* threads: the number of threads of a rank. Threads of a step wait for each other, so one without a core delays all. On a busy machine a
 * rank therefore uses fewer threads. */
#include "job/job.h"

#include <string.h>
#include <time.h>

/* Runnable threads on this machine, including this one; 0: unknown. */
static long runnable_now(void)
{
    long n = 0;
    FILE *f = fopen("/proc/loadavg", "r");
    if (f && fscanf(f, "%*f %*f %*f %ld", &n) != 1)
        n = 0;
    if (f)
        (void)fclose(f);
    return n;
}

/* The cores that others keep busy: the minimum of a few samples, because short bursts pass. */
static long busy_cores(long own)
{
    enum { LOOKS = 10, NANOSECONDS = 2000000 };
    long least = runnable_now() - own;
    for (int i = 1; i < LOOKS && least > 0; i++) {
        (void)nanosleep(&(struct timespec){0, NANOSECONDS}, NULL);
        long now = runnable_now() - own;
        least = now < least ? now : least;
    }
    return least > 0 ? least : 0;
}

int job_thread_count(const struct comm *comm, int64_t wanted)
{
    if (wanted)
        return (int)wanted;
    long all = cores_of_machine(), mine = cores_of_process();
    if (cores_quota(&control_system) < cores_online() && comm->rank == 0)
        explain("a control group allows %.4g of %d cores", cores_quota(&control_system), cores_online());
    if (strcmp(comm->kind, "local") == 0 || mine >= all)
        mine /= comm->local_size;
    long busy = mine > 1 ? busy_cores(comm->local_size) : 0, left = (cores_online() - busy) / comm->local_size;
    if (left >= mine)
        return mine < 1 ? 1 : (int)mine;
    if (comm->rank == 0)
        explain("others keep %ld of %d cores busy: %ld of %ld threads per rank", busy, cores_online(), left < 1 ? 1 : left, mine);
    return left < 1 ? 1 : (int)left;
}
