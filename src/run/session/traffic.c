/* traffic: time and bytes of collectives, for a session's statistics. */
#include "run/session/session.h"

struct traffic_start traffic_begin(struct session *s, const struct collective_node *c)
{
    s->comm->id = c->id;
    s->comm->name = c->name;
    return (struct traffic_start){clock_seconds(), s->comm->bytes_sent};
}

void traffic_end(struct session *s, struct session_collective *count, struct traffic_start t)
{
    double took = clock_seconds() - t.seconds;
    count->calls++;
    count->bytes += s->comm->bytes_sent - t.sent;
    count->seconds += took;
    s->stats.comm_seconds += took;
}

void session_reset_stats(struct session *s)
{
    s->stats.runs = 0;
    s->stats.seconds = s->stats.comm_seconds = 0;
    for (int i = 0; i < s->traffic.n; i++) {
        s->traffic.count[i].calls = s->traffic.count[i].bytes = 0;
        s->traffic.count[i].seconds = 0;
    }
    for (int i = 0; s->profile && i < s->nstep; i++)
        s->profile[i].wait_sum = s->profile[i].sum = s->profile[i].operations_sum = s->profile[i].moved_sum = 0;
}
