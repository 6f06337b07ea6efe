/* restart_hosts: chooses the hosts of a job. Before each start all named hosts are asked, and the first to answer are taken: a spare
 * replaces a lost host, and a host that is back is used again. If too few are left, the model is sharded again, for that number of hosts.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/restart/restart.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { EACH = 20 }; /* ms: interval of checks */

struct restart_hosts {
    const char *launch;
    struct text_list host;
    const char *folder; /* of the ranks */
    int ranks;
    const char *from; /* the model that fewer ranks are sharded from; NULL: impossible, because */
    const char *why;
    const char *shard, *run; /* the programs, as shell words */
    const char *build;       /* of the programs */
    bool *made;              /* by number of ranks: its folder has been made */
    double slowest;          /* seconds to the last answer at the previous start; 0: none yet */
    bool *taken;             /* by host: is part of the job */
    int *fails;              /* by host: number of failed starts since the last good one */
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

struct restart_hosts *restart_hosts_new(struct arena *a, const struct run_options *o, const char *bin, const char *program,
                                        const char *build)
{
    struct restart_hosts *h = NEW(a, struct restart_hosts);
    if (!o->hosts) {
        diag_tell("restarts: on the same hosts, for --hosts names no others");
        return NULL;
    }
    *h = (struct restart_hosts){.launch = o->launch, .host = split_hosts(a, o->hosts), .folder = o->job.paths.text.at[0]};
    h->ranks = job_rank_files(a, h->folder) * (int)o->job.groups;
    h->shard = shell_word(a, arena_printf(a, "%s/tpc-shard", bin));
    h->run = program;
    h->build = build;
    h->made = NEWN(a, bool, h->ranks + 1);
    h->taken = NEWN(a, bool, h->host.text.n);
    h->fails = NEWN(a, int, h->host.text.n);
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

/* ---- which hosts take part ---- */

/* Those whose last starts failed come last. */
static int *by_preference(struct arena *a, const struct restart_hosts *h)
{
    int *order = NEWN(a, int, h->host.text.n), n = 0;
    for (int fails = 0; n < h->host.text.n; fails++)
        for (int i = 0; i < h->host.text.n; i++)
            if (h->fails[i] == fails)
                order[n++] = i;
    return order;
}

static void note_start(struct restart_hosts *h, bool served)
{
    for (int i = 0; i < h->host.text.n; i++)
        if (h->taken[i])
            h->fails[i] = served ? 0 : h->fails[i] + 1;
}

/* Of those that would have been taken. */
static void tell_silent(struct arena *a, const struct restart_hosts *h, const struct restart_asked *asked, const int *order)
{
    const char *silent = "";
    int taken = 0;
    for (int i = 0; i < h->host.text.n && taken < h->ranks; i++) {
        const char *name = h->host.text.at[order[i]];
        taken += asked[i].answers;
        if (asked[i].why)
            diag_announce("%s can't take part: %s", name, asked[i].why);
        else if (!asked[i].answers)
            silent = arena_printf(a, "%s%s%s", silent, *silent ? ", " : "", name);
    }
    if (*silent)
        diag_announce("no answer of %s", silent);
}

/* The number of those that take part. */
static int choose(struct arena *a, struct restart_hosts *h, struct supervisor *s)
{
    const int all = h->host.text.n, *order = by_preference(a, h);
    struct restart_asked *asked = NEWN(a, struct restart_asked, all);
    int n = 0;
    for (int i = 0; i < all; i++)
        asked[i].command = arena_printf(a, "exec %s %s --answer %s %s 2>/dev/null", launch_on(a, h, h->host.text.at[order[i]], 1), h->run,
                                        h->build, shell_word(a, h->folder));
    restart_ask(a, asked, all, h->ranks, &h->slowest, s);
    for (int i = 0; i < all; i++) {
        h->taken[order[i]] = asked[i].answers && n < h->ranks;
        n += h->taken[order[i]];
    }
    if (!s->asked)
        tell_silent(a, h, asked, order);
    return n;
}

/* With commas between. */
static const char *list_taken(struct arena *a, const struct restart_hosts *h)
{
    const char *list = "";
    for (int i = 0; i < h->host.text.n; i++)
        if (h->taken[i])
            list = arena_printf(a, "%s%s%s", list, *list ? "," : "", h->host.text.at[i]);
    return list;
}

/* ---- fewer ranks ---- */

static bool make_ranks(struct arena *a, struct restart_hosts *h, int ranks, const char *folder, struct supervisor *s)
{
    int status = -1;
    if (h->made[ranks])
        return true;
    diag_announce("%d hosts are left: %s is sharded again, to %s", ranks, h->from, folder);
    struct program p = program_start(
        arena_printf(a, "exec %s %s --tp %d -q --force -o %s", h->shard, shell_word(a, h->from), ranks, shell_word(a, folder)));
    while (!program_has_ended(&p, &status) && !supervisor_rest(s))
        (void)nanosleep(&(struct timespec){0, EACH * 1000000L}, NULL);
    program_close(&p);
    h->made[ranks] = !s->asked && status == 0;
    return h->made[ranks];
}

const char *restart_hosts_launch(struct arena *a, struct restart_hosts *h, struct supervisor *s, const char **folder, const char **why)
{
    note_start(h, s->served);
    int n = choose(a, h, s);
    const char *launch = launch_on(a, h, list_taken(a, h), n);
    if (s->asked || n == h->ranks)
        return s->asked ? NULL : launch;
    *folder = arena_printf(a, "%s.%d-ranks", h->folder, n);
    if (n > 0 && !h->from && job_rank_files(a, *folder) == n)
        return launch;
    if (n > 0 && h->from && make_ranks(a, h, n, *folder, s))
        return launch;
    memset(h->taken, 0, (size_t)h->host.text.n * sizeof *h->taken);
    *why = n > 0 && h->from ? arena_printf(a, "%s can't be made", *folder)
                            : arena_printf(a, "%d of %d hosts are left, which is too few", n, h->ranks);
    return NULL;
}
