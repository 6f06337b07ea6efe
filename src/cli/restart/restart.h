/* restart: a job that starts again (--restart). */
#ifndef TPC_CLI_RESTART_H
#define TPC_CLI_RESTART_H

#include "cli/run.h"
#include "supervise/supervise.h"

/* restart_hosts.c: the hosts of --hosts; NULL: none are named. Reports what is possible. bin: the folder of this program; program: this
 * program, as a shell word. */
struct restart_hosts;
struct restart_hosts *restart_hosts_new(struct arena *, const struct run_options *, const char *bin, const char *program,
                                        const char *build);
/* The command that starts the next job, and its folder of ranks, if it changes. NULL: there is none, for the reason *why. */
const char *restart_hosts_launch(struct arena *, struct restart_hosts *, struct supervisor *, const char **folder, const char **why);

/* restart_ask.c: hosts in order of preference, and their answers. */
struct restart_asked {
    const char *command; /* of the shell */
    bool ended, answers;
    const char *why; /* reason why it can't take part; NULL: none given */
};
/* Until it is settled which are the first `wanted` that answer. *slowest: seconds to the last answer, of the time before and of this one;
 * 0: of none. */
void restart_ask(struct arena *, struct restart_asked *, int n, int wanted, double *slowest, struct supervisor *);
/* The host's side, tpc-run --answer BUILD FOLDER. same: it is of that build. Prints why it can't take part, if so; exit status. */
int restart_answer(bool same, const char *folder);

#endif
