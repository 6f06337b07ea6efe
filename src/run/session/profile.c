/* profile: times every step of a session on request. */
#include "run/session/session.h"

void profile_begin(struct session *s)
{
    s->profile = NEWN(s->arena, struct session_timed, s->nstep + 1);
    for (int i = 0; i < s->nstep; i++)
        s->profile[i] = (struct session_timed){.node = s->step[i].node,
                                               .module = node_module(s->graph, s->step[i].node),
                                               .collective = s->step[i].kind == STEP_COLLECTIVE,
                                               .in = s->step[i].in,
                                               .out = s->step[i].out};
}

/* Adds the work of a step that ran, or of one of its parts. */
static void add_work(struct session *s, int i, bool first)
{
    struct session_timed *t = &s->profile[i];
    const struct session_step *step = &s->step[i];
    double operations = step->kind == STEP_KERNEL ? work_operations(s, step) : 0, bytes = step->kind == STEP_KERNEL ? work_bytes(step) : 0;
    t->operations = operations + (first ? 0 : t->operations);
    t->moved = bytes + (first ? 0 : t->moved);
    t->operations_sum += operations;
    t->moved_sum += bytes;
}

/* A collective first waits for the other ranks, so that its own time is that of the messages. */
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
    add_work(s, i, true);
}

void profile_part(struct session *s, int i, double began, double start, bool first)
{
    struct session_timed *t = &s->profile[i];
    double took = clock_seconds() - start;
    t->at = first ? start - began : t->at;
    t->seconds = first ? took : t->seconds + took;
    t->sum += took;
    add_work(s, i, first);
}

const struct session_timed *session_times(const struct session *s, int *n)
{
    *n = s->nstep;
    return s->profile;
}
