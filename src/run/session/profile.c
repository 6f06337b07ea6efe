/* profile: the time of every step of a session, where it is asked for. */
#include "run/session/session.h"

void profile_begin(struct session *s)
{
    s->profile = NEWN(s->arena, struct session_timed, s->nstep + 1);
    for (int i = 0; i < s->nstep; i++)
        s->profile[i] = (struct session_timed){.node = s->step[i].node, .collective = s->step[i].kind == STEP_COLLECTIVE};
}

/* A collective waits for the others first, so that its own time is that of the messages. */
void profile_step(struct session *s, int i, double began, void (*run)(struct session *, struct session_step *))
{
    struct session_timed *t = &s->profile[i];
    double start = clock_seconds(), ready = start;
    int64_t sent = s->comm->bytes_sent;
    if (t->collective) {
        s->comm->barrier(s->comm);
        ready = clock_seconds();
    }
    run(s, &s->step[i]);
    t->at = start - began;
    t->wait = ready - start;
    t->seconds = clock_seconds() - ready;
    t->bytes = s->comm->bytes_sent - sent;
    t->wait_sum += t->wait;
    t->sum += t->seconds;
}

void profile_part(struct session *s, int i, double began, double start, bool first)
{
    struct session_timed *t = &s->profile[i];
    double took = clock_seconds() - start;
    t->at = first ? start - began : t->at;
    t->seconds = first ? took : t->seconds + took;
    t->sum += took;
}

const struct session_timed *session_times(const struct session *s, int *n)
{
    *n = s->nstep;
    return s->profile;
}
