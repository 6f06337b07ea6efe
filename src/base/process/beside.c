/* beside: jobs that run in parallel, on threads of this process. Threads end with the jobs: waiting ones would take time from others. */
#include "base/base.h"

#include <pthread.h>
#include <string.h>

enum { MOST_THREADS = 64, SENTENCE = 1024 };

struct team {
    const struct beside *work;
    void *data;
    struct scope *scope;
    pthread_mutex_t lock;
    bool failed;             /* guarded by lock, like sentence */
    char sentence[SENTENCE]; /* of the first failed job */
};

/* Ends a job, if it is one, and takes the next. */
static int next_job(struct team *t, int job)
{
    diag_lock(&t->lock);
    if (job != BESIDE_NONE && t->work->done)
        t->work->done(t->data, job);
    int next = t->failed ? BESIDE_NONE : t->work->take(t->data);
    diag_unlock(&t->lock);
    return next;
}

static void do_jobs(void *team)
{
    struct team *t = team;
    for (int job = next_job(t, BESIDE_NONE); job != BESIDE_NONE; job = next_job(t, job))
        t->work->run(t->data, job);
}

static void note_failure(struct team *t, const char *sentence)
{
    pthread_mutex_lock(&t->lock);
    if (!t->failed)
        memcpy(t->sentence, sentence, SENTENCE);
    t->failed = true;
    pthread_mutex_unlock(&t->lock);
}

static void *be_in_team(void *team)
{
    struct team *t = team;
    struct scope *outer = scope_swap(t->scope);
    char sentence[SENTENCE];
    if (diag_try_share(sentence, sizeof sentence, do_jobs, t) != 0)
        note_failure(t, sentence);
    (void)scope_swap(outer);
    return NULL;
}

/* The caller sees one failure: the calling thread's. */
void beside(int threads, const struct beside *work, void *data)
{
    struct team t = {.work = work, .data = data, .scope = scope_current()};
    pthread_t thread[MOST_THREADS];
    int started = 0;
    require(pthread_mutex_init(&t.lock, NULL) == 0);
    while (started < MOST_THREADS && started + 1 < threads && pthread_create(&thread[started], NULL, be_in_team, &t) == 0)
        started++;
    (void)be_in_team(&t);
    for (int i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
    (void)pthread_mutex_destroy(&t.lock);
    if (t.failed)
        fail("%s", t.sentence);
}
