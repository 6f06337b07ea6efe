/* launch: how tpc-run finds out whether it is one process of a job. */
#ifndef TPC_RUN_LAUNCH_H
#define TPC_RUN_LAUNCH_H

#include "run/comm/comm.h"

/* The environment variable that shows a launcher with several processes; NULL: none. */
const char *launch_variable(void);
/* The shell word that calls a program next to this one: called as this one was, with its folder or without. */
const char *launch_beside(struct arena *, const char *name);
/* Whether mpirun would start this many ranks here, in this environment. */
bool launch_starts(int64_t ranks);
/* All ranks of the job, or this one alone. */
struct comm *launch_comm(int *argc, char ***argv);

#endif
