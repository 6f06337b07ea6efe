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

static int64_t passed(const struct session *s, const struct session_collective *count)
{
    const struct pipeline_traffic t = pipeline_traffic(s->pipeline);
    return count == s->stage.sent ? t.sent : t.received;
}

struct traffic_start traffic_begin_pass(struct session *s, const struct session_collective *count)
{
    return (struct traffic_start){clock_seconds(), passed(s, count)};
}

void traffic_end_pass(struct session *s, struct session_collective *count, struct traffic_start t)
{
    int64_t bytes = passed(s, count) - t.sent;
    if (!bytes)
        return;
    double took = clock_seconds() - t.seconds;
    count->calls++;
    count->bytes += count == s->stage.sent ? bytes : 0;
    count->payload += bytes;
    count->seconds += took;
    s->stats.comm_seconds += took;
}

struct pipeline *session_pipeline(const struct session *s)
{
    return s->pipeline;
}

void session_reset_stats(struct session *s)
{
    s->stats.runs = 0;
    s->stats.seconds = s->stats.comm_seconds = 0;
    for (int i = 0; i < s->stats.ncollective; i++) {
        s->traffic.count[i].calls = s->traffic.count[i].bytes = s->traffic.count[i].payload = 0;
        s->traffic.count[i].seconds = s->traffic.count[i].behind = 0;
    }
    for (int i = 0; s->profile && i < s->nstep; i++)
        s->profile[i].wait_sum = s->profile[i].sum = s->profile[i].operations_sum = s->profile[i].moved_sum = 0;
}
