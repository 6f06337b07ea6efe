/* collective: runs a collective, in blocks if it is large, and compares the collectives of all ranks. kinds.c has what differs between
 * kinds. A collective is skipped only if its global size is 0, on which all ranks agree. */
#include "run/collective/collective.h"

#include <string.h>
#include <xxhash.h>

/* ---- running ---- */

void collective_run(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                    const struct tensor *x, struct tensor *y)
{
    const struct collective_kind *kind = collective_kind(c->kind);
    struct tensor from[TRAVEL_OPERANDS] = {*x}, to = *y;
    for (int i = 1; c->experts && i < TRAVEL_OPERANDS; i++)
        from[i] = x[i];
    comm->id = c->id;
    comm->name = c->name;
    comm->wire = c->wire;
    for (int64_t i = 0; i < route->strips; i++) {
        kind->run(c, route, comm, scratch, from, &to);
        from[0].data = (char *)from[0].data + route->x_step;
        to.data = (char *)to.data + route->y_step;
    }
    if (route->last)
        kind->run(c, route->last, comm, scratch, from, &to);
    comm->wire = WIRE_F32;
}

/* ---- agreement at load -------------------------------------------------------------------------------------------------------- */

static const char *list_line(struct arena *a, const struct collective_node *c)
{
    return arena_printf(a, "%lld %s '%s' axis %d %d root %d %s %s from %s to %s%s%s", (long long)c->id, collective_name(c->kind), c->name,
                        c->axis, c->axis2, c->root, redop_name(c->red), sum_wire_name(c->wire), c->from ? split_str(a, c->from) : "-",
                        c->to ? split_str(a, c->to) : "-", c->experts ? " experts " : "", c->experts ? split_str(a, c->experts) : "");
}

static const char comparing[] = "comparison of the ranks' lists of collectives";

/* Rank 0 sends its list line by line; fails with the first line that differs. */
static _Noreturn void first_difference(struct comm *comm, struct arena *a, const char *path, const char *const *line, int n)
{
    const int *count = comm_gather(comm, a, comparing, &n, sizeof n);
    int most = 0;
    for (int r = 0; r < comm->size; r++)
        most = count[r] > most ? count[r] : most;
    for (int i = 0; i < most; i++) {
        char theirs[256] = "nothing";
        if (i < n && comm->rank == 0)
            snprintf(theirs, sizeof theirs, "%s", line[i]);
        comm_from_first(comm, comparing, theirs, sizeof theirs);
        const char *mine = i < n ? line[i] : "nothing";
        if (comm->rank && strncmp(theirs, mine, sizeof theirs - 1))
            fail("%s: rank %d and rank 0 would run out of step: collective %s here, %s there", path, comm->rank, mine, theirs);
    }
    comm->barrier(comm);
    fail("%s: the ranks' files are not of one plan", path);
}

void collective_agree(struct comm *comm, struct arena *a, const char *path, const struct collective_node *c, int n, uint64_t plan)
{
    const char **line = NEWN(a, const char *, n);
    uint64_t hash = plan;
    for (int i = 0; i < n; i++) {
        line[i] = list_line(a, &c[i]);
        hash = XXH3_64bits_withSeed(line[i], strlen(line[i]), hash);
    }
    const uint64_t *all = comm_gather(comm, a, comparing, &hash, sizeof hash);
    for (int r = 1; r < comm->size; r++)
        if (all[r] != all[0])
            first_difference(comm, a, path, line, n);
}
