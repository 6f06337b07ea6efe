/* supervisor: runs a job, and starts it again when it is lost: when its program ends, when a rank says that it fails, or when no beat of
 * rank 0 has come for a while. Ranks watch each other (src/run/comm/watch.c). */
#include "supervise/supervise.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRONG_USAGE = 2, FAILED = 1 << 8 }; /* the exit status of what no restart would mend; status 1, as of wait */
enum { BEAT_EACH = 1000, SILENT = 2500 };  /* ms */
/* Seconds to the first beat: of the first start; of later ones, so many times as long as the slowest one before, but at least. */
static const double first_within = 60, slowest_times = 5, start_at_least = 10;
/* Seconds for a job that says that it fails to end by itself: one that was ready; one that starts, of which more may be said. */
static const double fails_within = 0.3, says_within = 2;
static const double wait_at_most = 30; /* s between starts that fail */

/* What is done with the program that runs. */
struct course {
    struct life *life;
    double began, beat, until; /* its start; the last beat to it; when it is to have ended in order; 0: not asked for */
    int first_rank;            /* its process, where it is on this host; 0: it is not */
    bool started, noted;       /* it has beaten; the memory that it shares is noted */
    bool ended, said;          /* by itself; a rank has said why */
    int status;                /* of its end, as of wait */
    const char *lost;          /* why it did not end in order; NULL: it did */
};

const char *supervisor_word(enum supervision s)
{
    static const char *const word[] = {"starting", "serving", "restarting"};
    return word[s];
}

enum supervision supervisor_state(struct supervisor *s, int *restarts, char *why)
{
    pthread_mutex_lock(&s->lock);
    enum supervision state = s->state;
    *restarts = s->restarts;
    if (why)
        memcpy(why, s->why, sizeof s->why);
    pthread_mutex_unlock(&s->lock);
    return state;
}

static void set_state(struct supervisor *s, enum supervision state)
{
    pthread_mutex_lock(&s->lock);
    s->state = state;
    pthread_mutex_unlock(&s->lock);
}

/* Set before the job's processes are ended. */
static void set_lost(struct supervisor *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->state == SUPERVISE_RUNS)
        s->state = SUPERVISE_RESTARTS;
    pthread_mutex_unlock(&s->lock);
}

/* ---- messages to the job ---- */

/* As many as it accepts now. */
static void flush(struct supervisor *s)
{
    struct message_text *b = &s->unsent;
    if (!b->to.n || !s->program.pid)
        return;
    ssize_t n = write(s->program.in, b->to.at, (size_t)b->to.n);
    if (n <= 0)
        return;
    memmove(b->to.at, b->to.at + n, (size_t)(b->to.n - (int)n));
    b->to.n -= (int)n;
}

void supervisor_send(struct supervisor *s, int kind, struct message_data data)
{
    struct arena *tmp = arena_new();
    const char *line = message_line(tmp, kind, data);
    message_put(&s->unsent, line, strlen(line));
    arena_free(tmp);
    flush(s);
}

/* ---- the life of a program ---- */

static const char *hear(void *supervisor, const struct message *m)
{
    struct supervisor *s = supervisor;
    const char *bad = s->take ? s->take(s->own, m) : NULL;
    if (m->kind == MESSAGE_READY && !bad)
        set_state(s, SUPERVISE_RUNS);
    return bad;
}

static void pass_on(void *supervisor, struct message_data other)
{
    struct supervisor *s = supervisor;
    s->other(s->own, other);
}

bool supervisor_rest(struct supervisor *s)
{
    s->asked = s->asked || s->tend(s->own);
    return s->asked;
}

static double longest_start(const struct supervisor *s)
{
    const double usual = slowest_times * s->slowest;
    return s->slowest > 0 ? fmax(usual, start_at_least) : first_within;
}

/* Why it is lost; NULL: it runs. */
static const char *loss(struct supervisor *s, struct course *c, struct arena *a)
{
    const struct life_signs l = life_look(c->life);
    const double now = clock_seconds(), silent = now - l.heard;
    c->ended = program_has_ended(&s->program, &c->status);
    if (c->ended)
        return program_status(a, c->status);
    if (l.fails > 0 && now - l.fails > (l.ready ? fails_within : says_within))
        return "a rank ended with a failure";
    if (l.bad)
        return l.bad;
    if (s->endless && !s->asked && !(l.fails > 0) && c->first_rank && family_member_ended(c->first_rank))
        return "rank 0 ended without a word: it was killed (as by kill -9), or crashed";
    if (l.heard > 0 && silent > 1e-3 * SILENT)
        return arena_printf(a, "rank 0 has sent no heartbeat for %.1f s", silent);
    if (!(l.heard > 0) && now - c->began > longest_start(s))
        return arena_printf(a, "rank 0 has sent no heartbeat within %.0f s of the start", longest_start(s));
    return NULL;
}

/* What is done again and again while it runs. */
static void keep_up(struct supervisor *s, struct course *c)
{
    const struct life_signs l = life_look(c->life);
    const double now = clock_seconds();
    if (!c->started && l.heard > 0) {
        c->started = true;
        c->first_rank = family_has(l.pid) ? l.pid : 0;
        s->slowest = fmax(s->slowest, now - c->began);
    }
    if (now - c->beat > 1e-3 * BEAT_EACH) {
        supervisor_send(s, MESSAGE_BEAT, (struct message_data){"", 0});
        c->beat = now;
    }
    if (l.fails > 0)
        set_lost(s);
    if (!c->noted && l.ready) {
        program_note_files(&s->program);
        c->noted = true;
    }
    flush(s);
}

/* Sees to it until it is lost or ends in order. */
static void attend(struct supervisor *s, struct course *c, struct arena *a)
{
    while (!c->lost) {
        keep_up(s, c);
        if (c->until > 0)
            (void)nanosleep(&(struct timespec){0, 10000000}, NULL);
        else if (supervisor_rest(s)) {
            c->until = clock_seconds() + s->end_within;
            supervisor_send(s, MESSAGE_END, (struct message_data){"", 0});
        }
        c->lost = loss(s, c, a);
        if (s->asked && (!life_look(c->life).ready || clock_seconds() > c->until))
            break;
    }
    if (s->asked || (c->ended && c->status == 0 && !s->endless))
        c->lost = NULL;
}

/* What a rank said of its failure tells more than how the program ended. What is said once it is made to end does not count. */
static void take_last_words(struct course *c, const struct life_signs *l, struct arena *a)
{
    if (!c->lost || !(l->fails > 0))
        return;
    c->said = true;
    c->status = l->status ? l->status << 8 : FAILED;
    if (l->said[0])
        c->lost = arena_strdup(a, l->said);
}

/* A program from its start to its end. */
static void live(struct supervisor *s, struct course *c, struct arena *a, int start)
{
    const char *words = s->command(s->start_of, a, start, &c->lost);
    s->served = false;
    s->program = words ? program_start(words) : (struct program){.pid = 0};
    if (!s->program.pid) {
        c->status = FAILED;
        c->lost = s->asked ? NULL : words ? arena_printf(a, "the job can't be started: %s", strerror(s->program.error)) : c->lost;
        return;
    }
    struct life l = {.arena = a, .out = s->program.out, .take = hear, .other = pass_on, .own = s};
    c->life = &l;
    c->began = clock_seconds();
    if (!life_hear(&l))
        fail("can't create a thread for messages of the job");
    attend(s, c, a);
    if (c->lost)
        set_lost(s);
    struct life_signs last = life_look(&l);
    const bool knows = last.fails > 0 || (c->first_rank && family_member_ended(c->first_rank)); /* that a rank has ended */
    program_end(&s->program, !s->launched ? PROGRAM_KILL : knows ? PROGRAM_WAIT : PROGRAM_ASK);
    s->served = life_end(&l);
    if (c->ended)
        last = life_look(&l);
    take_last_words(c, &last, a);
    s->unsent.to.n = 0;
}

/* ---- one after another ---- */

/* Those in the time that counts are too many. */
static bool is_too_often(struct supervisor *s)
{
    double now = clock_seconds(), *oldest = &s->begun[s->restarts % s->most];
    bool often = s->restarts >= s->most && now - *oldest < s->seconds;
    *oldest = now;
    return often;
}

/* False: no further restart is allowed. */
static bool note_restart(struct supervisor *s, const char *why)
{
    bool often = is_too_often(s);
    pthread_mutex_lock(&s->lock);
    s->state = SUPERVISE_RESTARTS;
    s->restarts += !often;
    snprintf(s->why, sizeof s->why, "%s", why);
    pthread_mutex_unlock(&s->lock);
    if (often)
        diag_announce("%s: it was started again %lld times within %.0f s, as often as --restart-limit allows, and is not any more", why,
                      (long long)s->most, s->seconds);
    else
        diag_announce("%s: restart %d", why, s->restarts);
    return !often;
}

/* It may start again, behind what c was; else says why not, unless a rank has said all. */
static bool goes_on(struct supervisor *s, struct course *c, int start)
{
    const bool usage = WIFEXITED(c->status) && WEXITSTATUS(c->status) == WRONG_USAGE, first = start == 0 && !s->served;
    if (!c->lost)
        return false;
    if (first && !c->said)
        diag_announce("%s: a first start that fails is not tried again", c->lost);
    if (usage && !first)
        diag_announce("%s: a restart would not mend it", c->lost);
    if (first || usage)
        return false;
    bool again = note_restart(s, c->lost);
    c->status = again ? c->status : FAILED;
    return again;
}

/* Of starts that fail one after another, the first waits 1 s for the next one, and each twice as long as the one before. */
static void wait_for_next(struct supervisor *s, int failed)
{
    double seconds = failed < 6 ? (double)(1 << failed) / 2 : wait_at_most, until = clock_seconds() + seconds;
    while (failed && clock_seconds() < until && !supervisor_rest(s))
        continue;
}

int supervisor_run(struct supervisor *s)
{
    struct arena *kept = arena_new();
    int status = 0, failed = 0;
    bool again = true;
    s->unsent.arena = kept;
    s->begun = NEWN(kept, double, s->most);
    for (int start = 0; again && !s->asked; start++) {
        struct arena *a = arena_new();
        struct course c = {.life = NULL};
        live(s, &c, a, start);
        failed = s->served ? 0 : failed + 1;
        if (c.lost && s->lost)
            s->lost(s->own);
        again = goes_on(s, &c, start);
        status = c.status;
        if (again)
            wait_for_next(s, failed);
        arena_free(a);
    }
    arena_free(kept);
    return s->asked ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
