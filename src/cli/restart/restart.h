/* restart: a job that starts again (--restart). */
#ifndef TPC_CLI_RESTART_H
#define TPC_CLI_RESTART_H

#include "cli/run.h"
#include "supervise/supervise.h"

/* restart_hosts.c: the hosts of --hosts; NULL: none are named. Reports what is possible. bin: the folder of this program. */
struct restart_hosts;
struct restart_hosts *restart_hosts_new(struct arena *, const struct run_options *, const char *bin);
/* The command that starts the next job, and its folder of ranks, if it changes. NULL: too few hosts are left. */
const char *restart_hosts_launch(struct arena *, struct restart_hosts *, const char **folder);

#endif
