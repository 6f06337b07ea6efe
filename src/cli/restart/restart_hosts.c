/* restart_hosts: chooses the hosts of a job. Before each start all named hosts are asked to run an empty command, and the first to answer
 * are taken: a spare replaces a lost host, and a host that is back is used again. If too few are left, the model is sharded again, for that
 * number of hosts. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/restart/restart.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { EACH = 20 }; /* ms: interval of checks */
/* Seconds to wait for answers; with too few, this multiple of the slowest answer at the previous start, up to the maximum. */
static const double answer_within = 3, slowest_times = 3, answer_at_most = 8;

struct restart_hosts {
    const char *launch;
    struct text_list host;
    const char *folder; /* of the ranks */
    int ranks;
    const char *from; /* the model that fewer ranks are sharded from; NULL: impossible, because */
    const char *why;
    const char *shard; /* the program, as a word of the shell */
    bool *made;        /* by number of ranks: its folder has been made */
    double slowest;    /* seconds to the last answer at the previous start; 0: none yet */
};

/* ---- words ---- */

static const char *replaced(struct arena *a, const char *text, const char *what, const char *by)
{
    const char *at = strstr(text, what);
    return at ? arena_printf(a, "%s%s%s", arena_strndup(a, text, (size_t)(at - text)), by, replaced(a, at + strlen(what), what, by)) : text;
}

static const char *launch_on(struct arena *a, const struct restart_hosts *h, const char *hosts, int ranks)
{
    return replaced(a, replaced(a, h->launch, "{hosts}", hosts), "{ranks}", arena_printf(a, "%d", ranks));
}

static bool has_all_ranks(struct arena *a, const struct restart_hosts *h)
{
    struct stat found;
    bool all = stat(arena_printf(a, "%s/manifest.json", h->folder), &found) == 0;
    for (int r = 0; r < h->ranks; r++)
        all = all && stat(arena_printf(a, "%s/rank-%d.data", h->folder, r), &found) == 0;
    return all;
}

static struct text_list split_hosts(struct arena *a, const char *text)
{
    struct text_list all = {0};
    for (size_t n; n = strcspn(text, ","), true; text += n + 1) {
        if (!n)
            fail_usage("--hosts has an empty name, expected HOST,HOST..");
        VEC_PUSH(a, &all.text, shell_word(a, arena_strndup(a, text, n)));
        if (!text[n])
            return all;
    }
}

/* ---- possible restarts ---- */

static void tell(const struct restart_hosts *h)
{
    int spares = h->host.text.n - h->ranks;
    if (h->from)
        diag_tell("restarts: on the first %d of %d hosts that answer; on fewer with ranks made of %s", h->ranks, h->host.text.n, h->from);
    else
        diag_tell("restarts: on the first %d of %d hosts that answer; on fewer only with ranks that are there already: %s%s", h->ranks,
                  h->host.text.n, h->why, spares ? "" : ". Otherwise all of these must come back");
}

struct restart_hosts *restart_hosts_new(struct arena *a, const struct run_options *o, const char *bin)
{
    struct restart_hosts *h = NEW(a, struct restart_hosts);
    if (!o->hosts) {
        diag_tell("restarts: on the same hosts, for --hosts names no others");
        return NULL;
    }
    *h = (struct restart_hosts){.launch = o->launch, .host = split_hosts(a, o->hosts), .folder = o->job.paths.text.at[0]};
    h->ranks = job_rank_files(a, h->folder) * (int)o->job.groups;
    h->shard = shell_word(a, arena_printf(a, "%s/tpc-shard", bin));
    h->made = NEWN(a, bool, h->ranks + 1);
    if (o->job.train && o->restart.text)
        fail_usage("--restart=MODEL is for --serve: make ranks that train for fewer hosts yourself");
    if (h->ranks < 1 || o->job.paths.text.n > 1)
        fail_usage("--hosts is for one folder of ranks, a host for each rank");
    if (h->host.text.n < h->ranks)
        fail_usage("--hosts names %d hosts, and %s is for %d ranks: a host for each, and spares behind them", h->host.text.n, h->folder,
                   h->ranks);
    if (o->job.groups > 1)
        h->why = "--groups is given";
    else if (o->job.train) /* its maker chose what is trained, and how */
        h->why = arena_printf(a, "make ranks that train as %s.N-ranks, for N hosts", h->folder);
    else if (o->restart.text)
        h->from = o->restart.text;
    else if (has_all_ranks(a, h))
        h->from = h->folder;
    else
        h->why = arena_printf(a, "%s has not the files of all ranks here, and --restart=MODEL names no other source", h->folder);
    tell(h);
    return h;
}

/* ---- which hosts answer ---- */

static double longest_wait(const struct restart_hosts *h)
{
    return h->slowest > 0 ? fmin(fmax(slowest_times * h->slowest, answer_within), answer_at_most) : answer_at_most;
}

static void wait_for_answers(struct restart_hosts *h, struct program *asked, bool *answers)
{
    const double began = clock_seconds(), longest = longest_wait(h);
    double last = 0;
    int n = h->host.text.n, open = n, answered = 0;
    for (double waited = 0; open && waited < (answered < h->ranks ? longest : answer_within); waited = clock_seconds() - began) {
        open = answered = 0;
        for (int i = 0; i < n; i++) {
            int status;
            bool ended = program_has_ended(&asked[i], &status);
            if (ended && status == 0 && !answers[i])
                last = clock_seconds() - began;
            answers[i] = ended && status == 0;
            open += !ended;
            answered += answers[i];
        }
        (void)nanosleep(&(struct timespec){0, EACH * 1000000L}, NULL);
    }
    h->slowest = last;
}

static void ask(struct arena *a, struct restart_hosts *h, bool *answers)
{
    int n = h->host.text.n;
    struct program *asked = NEWN(a, struct program, n);
    for (int i = 0; i < n; i++)
        asked[i] = program_start(arena_printf(a, "exec %s true 2>/dev/null", launch_on(a, h, h->host.text.at[i], 1)));
    wait_for_answers(h, asked, answers);
    for (int i = 0; i < n; i++)
        program_close(&asked[i]);
}

/* The first hosts that answer, separated by commas, up to the number of ranks. */
static const char *choose(struct arena *a, struct restart_hosts *h, int *n)
{
    bool *answers = NEWN(a, bool, h->host.text.n);
    const char *chosen = "", *silent = "";
    ask(a, h, answers);
    *n = 0;
    for (int i = 0; i < h->host.text.n; i++)
        if (answers[i] && *n < h->ranks)
            chosen = arena_printf(a, "%s%s%s", chosen, (*n)++ ? "," : "", h->host.text.at[i]);
        else if (!answers[i])
            silent = arena_printf(a, "%s%s%s", silent, *silent ? ", " : "", h->host.text.at[i]);
    if (*silent)
        diag_announce("no answer of %s", silent);
    return chosen;
}

/* ---- fewer ranks ---- */

static bool make_ranks(struct arena *a, struct restart_hosts *h, int ranks, const char *folder)
{
    int status = -1;
    if (h->made[ranks])
        return true;
    diag_announce("%d hosts are left: %s is sharded again, to %s", ranks, h->from, folder);
    struct program p = program_start(
        arena_printf(a, "exec %s %s --tp %d -q --force -o %s", h->shard, shell_word(a, h->from), ranks, shell_word(a, folder)));
    while (!program_has_ended(&p, &status))
        (void)nanosleep(&(struct timespec){0, EACH * 1000000L}, NULL);
    program_close(&p);
    h->made[ranks] = status == 0;
    return h->made[ranks];
}

const char *restart_hosts_launch(struct arena *a, struct restart_hosts *h, const char **folder)
{
    int n;
    const char *hosts = choose(a, h, &n);
    if (n == h->ranks)
        return launch_on(a, h, hosts, n);
    *folder = arena_printf(a, "%s.%d-ranks", h->folder, n);
    if (n > 0 && !h->from && job_rank_files(a, *folder) == n)
        return launch_on(a, h, hosts, n);
    if (n == 0 || !h->from)
        diag_announce("%d of %d hosts are left, which is too few", n, h->ranks);
    else if (make_ranks(a, h, n, *folder))
        return launch_on(a, h, hosts, n);
    return NULL;
}
