/* launch: how tpc-run finds out whether it is one process of a job. */
#ifndef TPC_RUN_LAUNCH_H
#define TPC_RUN_LAUNCH_H

#include "run/comm/comm.h"

/* The environment variable that shows a launcher with several processes; NULL: none. */
const char *launch_variable(void);
/* How to call a program that stands beside this one: as this one was called, with its folder or without. A word of a shell. */
const char *launch_beside(struct arena *, const char *name);
/* Whether mpirun would start so many ranks here, in this environment. */
bool launch_starts(int64_t ranks);
/* All ranks of the job, or this one alone. */
struct comm *launch_comm(int *argc, char ***argv);

#endif
