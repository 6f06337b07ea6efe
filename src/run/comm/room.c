/* room: refuses a run whose ranks on this machine need more memory than is available, with one sentence, before they allocate it. */
#include "run/comm/comm.h"

#include <string.h>

enum { SMALL = 1 << 20 }; /* not worth checking */

static void check(const char *path, const char *what, int64_t bytes, int64_t held, int ranks, struct available room)
{
    if (bytes - held <= room.bytes / ranks)
        return;
    fail("%s: the %s take %.1f MiB of memory%s, and %s has %.1f MiB available: --force runs it all the same", path, what,
         (double)bytes * ranks / 1048576, ranks > 1 ? " on the ranks of this machine" : "", room.limit, (double)room.bytes / 1048576);
}

/* The ranks on this machine that share a process's limits. */
static int in_process(const struct comm *comm)
{
    return strcmp(comm->kind, "local") == 0 ? comm->local_size : 1;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t room_left(const struct comm *comm)
{
    int64_t limits = lesser(available_addresses().bytes, available_data().bytes) / in_process(comm);
    return lesser(limits, available_memory().bytes / comm->local_size);
}

void room_check(const struct comm *comm, const char *path, const char *what, struct room_need need)
{
    int64_t addresses;
    int threads = in_process(comm);
    if (need.resident < SMALL)
        return;
    if (!i64_add(need.own, need.mapped, &addresses))
        addresses = INT64_MAX;
    check(path, what, addresses, need.held, threads, available_addresses());
    check(path, what, need.own, need.held, threads, available_data());
    check(path, what, need.resident, need.held, comm->local_size, available_memory());
}
