/* beside: jobs that run beside each other, on threads of this process. The threads live as long as the jobs: waiting ones would take time
 * from others. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_THREADS = 64, SENTENCE = 1024 };

struct team {
    void (*run)(void *, int);
    void *data;
    int n;
    atomic_int next;
    struct scope *scope;
    atomic_bool failed;
    char sentence[SENTENCE]; /* of the first job that failed */
};
struct team_job {
    const struct team *team;
    int i;
};

int beside_cores(void)
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
}

static void run_job(void *team_job)
{
    const struct team_job *j = team_job;
    j->team->run(j->team->data, j->i);
}

static void *take_jobs(void *team)
{
    struct team *t = team;
    struct scope *outer = scope_swap(t->scope);
    char sentence[SENTENCE];
    for (int i = atomic_fetch_add(&t->next, 1); i < t->n; i = atomic_fetch_add(&t->next, 1)) {
        struct team_job j = {t, i};
        if (diag_try_share(sentence, sizeof sentence, run_job, &j) != 0 && !atomic_exchange(&t->failed, true))
            memcpy(t->sentence, sentence, sizeof sentence);
    }
    (void)scope_swap(outer);
    return NULL;
}

/* A job that fails lets the others end, then the calling thread fails: to those who wait for it they are one. */
void beside(int threads, int n, void (*run)(void *, int), void *data)
{
    struct team t = {.run = run, .data = data, .n = n, .scope = scope_current()};
    pthread_t thread[MOST_THREADS];
    int started = 0;
    while (started < MOST_THREADS && started + 1 < threads && started + 1 < n && pthread_create(&thread[started], NULL, take_jobs, &t) == 0)
        started++;
    (void)take_jobs(&t);
    for (int i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
    if (t.failed)
        fail("%s", t.sentence);
}
