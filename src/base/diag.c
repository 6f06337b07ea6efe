/* diag: failure messages, and the hooks that clean up before the process ends.
 *
 * fail() is for errors the user can fix, fail_usage() for a wrong command line, bug_at() for a broken invariant in tpc. Each message is one
 * line on stderr, written with one call so that lines of several ranks don't mix. Hooks run newest first, once: a hook that fails itself
 * ends the process without running again. Rank threads may fail at the same time: the first one wins, the others wait. */
#include "base/base.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LINE = 4096, MOST_HELD = 4 };

static struct diag_voice program_voice = {"tpc", 0};
static struct diag_hooks program_hooks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t failing_thread;
static bool failing;
static int give_way;
static const char *place;
static _Thread_local const char *progress;
static _Thread_local struct trap {
    jmp_buf at;
    struct scope *leaves; /* the scope that a failure ends; NULL: only this work */
    struct trap *outer;
    char sentence[MAX_LINE];
    int status;
    pthread_mutex_t *held[MOST_HELD];
    int holds;
} * trap; /* NULL: a failure ends the program */

/* Of this thread's scope, else of the program. */
static struct diag_voice *voice(void)
{
    struct scope *s = scope_current();
    return s ? scope_voice(s) : &program_voice;
}

static struct diag_hooks *hooks(void)
{
    struct scope *s = scope_current();
    return s ? scope_hooks(s) : &program_hooks;
}

void diag_setup(const char *program, int verbosity)
{
    *voice() = (struct diag_voice){program, verbosity};
}

bool diag_is_quiet(void)
{
    return voice()->verbosity < 0;
}

bool diag_is_verbose(void)
{
    return voice()->verbosity > 0;
}

void diag_place(const char *where)
{
    place = where;
}

void diag_progress(const char *how_far)
{
    progress = how_far;
}

void diag_give_way(int milliseconds)
{
    give_way = milliseconds;
}

static void add_hook(struct diag_hook hook)
{
    struct diag_hooks *h = hooks();
    pthread_mutex_lock(&lock);
    bool room = h->n < DIAG_HOOKS;
    if (room)
        h->at[h->n++] = hook;
    pthread_mutex_unlock(&lock);
    require(room);
}

void diag_on_failure(void (*run)(void *, int status), void *data)
{
    add_hook((struct diag_hook){run, data, false});
}

void diag_before_message(void (*run)(void *, int status), void *data)
{
    add_hook((struct diag_hook){run, data, true});
}

void diag_hold(void)
{
    pthread_mutex_lock(&lock);
    bool late = failing && !pthread_equal(failing_thread, pthread_self());
    if (late)
        pthread_mutex_unlock(&lock);
    while (late)
        (void)pause();
}

void diag_release(void)
{
    pthread_mutex_unlock(&lock);
}

static void drop_hook(struct diag_hooks *h, int i)
{
    memmove(&h->at[i], &h->at[i + 1], (size_t)(h->n - 1 - i) * sizeof h->at[0]);
    h->n--;
}

/* A running hook still reads its data: its owner waits for the end. */
void diag_forget(void (*run)(void *, int status), void *data)
{
    struct diag_hooks *h = hooks();
    diag_hold();
    for (int i = h->n - 1; i >= 0; i--)
        if (h->at[i].run == run && h->at[i].data == data) {
            drop_hook(h, i);
            break;
        }
    diag_release();
}

/* The last line that was printed. */
static struct {
    pthread_mutex_t lock;
    char text[DIAG_SAID];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

void diag_said(char text[DIAG_SAID])
{
    pthread_mutex_lock(&said.lock);
    memcpy(text, said.text, sizeof said.text);
    pthread_mutex_unlock(&said.lock);
}

static void note_said(const char *line)
{
    const char *behind = strstr(line, ": ");
    pthread_mutex_lock(&said.lock);
    (void)snprintf(said.text, sizeof said.text, "%.*s", DIAG_SAID - 1, behind ? behind + 2 : line);
    pthread_mutex_unlock(&said.lock);
}

/* One line, one write; control characters of hostile names are shown as '?'. */
void diag_make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

static void print_line(const char *level, const char *format, va_list args)
{
    char line[MAX_LINE];
    const char *far = progress;
    int head = snprintf(line, sizeof line - 2, "%.64s: %.320s%s%.64s%s%s", voice()->program, place ? place : "", place ? ": " : "",
                        far ? far : "", far ? ": " : "", level);
    if (head < 0)
        return;
    size_t used = (size_t)head;
    int body = vsnprintf(line + used, sizeof line - 1 - used, format, args);
    if (body < 0)
        return;
    diag_make_printable(line);
    note_said(line);
    size_t length = strlen(line);
    line[length] = '\n';
    (void)fwrite(line, 1, length + 1, stderr);
    (void)fflush(stderr);
}

/* True for the thread that may end the process; another failing thread waits for that end forever. */
static bool first_to_fail(void)
{
    pthread_mutex_lock(&lock);
    bool again = failing && pthread_equal(failing_thread, pthread_self());
    bool first = !failing;
    if (first) {
        failing = true;
        failing_thread = pthread_self();
    }
    pthread_mutex_unlock(&lock);
    if (!first && !again)
        for (;;)
            (void)pause();
    if (first)
        (void)nanosleep(&(struct timespec){give_way / 1000, give_way % 1000 * 1000000L}, NULL);
    return first;
}

/* Both streams may be the same terminal. */
static void run_hooks_before(int status)
{
    for (int i = program_hooks.n - 1; i >= 0; i--) {
        struct diag_hook h = program_hooks.at[i];
        if (!h.before)
            continue;
        drop_hook(&program_hooks, i);
        h.run(h.data, status);
        (void)fflush(stdout);
    }
}

static void run_hooks(int status)
{
    while (program_hooks.n > 0) {
        struct diag_hook h = program_hooks.at[--program_hooks.n];
        h.run(h.data, status);
    }
}

/* exit() would run handlers of libraries whose threads may still be busy: flush our streams and leave. */
static _Noreturn void leave(bool first, int status)
{
    if (first)
        run_hooks(status);
    (void)fflush(NULL);
    _Exit(status);
}

/* Frees the locks that the thread holds. */
static void free_held(void)
{
    while (trap->holds > 0)
        (void)pthread_mutex_unlock(trap->held[--trap->holds]);
}

/* Leaves the work that set the trap. */
static _Noreturn void leave_work(int status)
{
    trap->status = status;
    if (trap->leaves)
        scope_note(trap->leaves, trap->sentence, status);
    free_held();
    longjmp(trap->at, 1);
}

static _Noreturn void end_with_message(int status, const char *format, va_list args)
{
    if (trap) {
        (void)vsnprintf(trap->sentence, sizeof trap->sentence, format, args);
        leave_work(status);
    }
    bool first = first_to_fail();
    if (first)
        run_hooks_before(status);
    print_line("", format, args);
    leave(first, status);
}

static _Thread_local struct diag_subject subject;

struct diag_subject diag_work_on(struct diag_subject now)
{
    struct diag_subject before = subject;
    subject = now;
    return before;
}

/* 0, or the status of the failure. */
static int work_in(struct trap *own, void (*work)(void *), void *data)
{
    const struct diag_subject before = subject;
    own->outer = trap;
    own->status = 0;
    own->holds = 0;
    trap = own;
    if (setjmp(own->at) == 0)
        work(data);
    trap = own->outer;
    subject = before;
    return own->status;
}

const char *diag_try(struct arena *a, void (*work)(void *), void *data)
{
    struct trap own = {.leaves = NULL};
    return work_in(&own, work, data) ? arena_strdup(a, own.sentence) : NULL;
}

int diag_try_share(char *sentence, size_t room, void (*work)(void *), void *data)
{
    struct trap own;
    own.leaves = NULL;
    int status = work_in(&own, work, data);
    if (status)
        snprintf(sentence, room, "%s", own.sentence);
    return status;
}

int diag_leave_on_failure(struct scope *scope, void (*work)(void *), void *data)
{
    struct trap own = {.leaves = scope};
    return work_in(&own, work, data);
}

void diag_lock(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    if (trap && trap->holds < MOST_HELD)
        trap->held[trap->holds++] = mutex;
}

void diag_unlock(pthread_mutex_t *mutex)
{
    if (trap && trap->holds > 0 && trap->held[trap->holds - 1] == mutex)
        trap->holds--;
    pthread_mutex_unlock(mutex);
}

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end_with_message(1, format, args);
}

void fail_here(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail("%s%s%s", subject.say ? subject.say(subject.whole, subject.part) : "", subject.say ? ": " : "", text);
}

void fail_job(const char *format, ...)
{
    va_list args;
    while (trap && !trap->leaves) {
        free_held();
        trap = trap->outer;
    }
    va_start(args, format);
    end_with_message(1, format, args);
}

void fail_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end_with_message(2, format, args);
}

void bug_at(const char *file, int line, const char *format, ...)
{
    char level[256];
    (void)snprintf(level, sizeof level, "bug at %s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    if (trap && trap->leaves) {
        int head = snprintf(trap->sentence, sizeof trap->sentence, "%s", level);
        (void)vsnprintf(trap->sentence + head, sizeof trap->sentence - (size_t)head, format, args);
        leave_work(DIAG_BUG);
    }
    bool first = first_to_fail();
    if (first)
        run_hooks_before(DIAG_BUG);
    print_line(level, format, args);
    va_end(args);
    if (first)
        run_hooks(DIAG_BUG);
    (void)signal(SIGABRT, SIG_DFL);
    abort();
}

void diag_tell(const char *format, ...)
{
    if (voice()->verbosity < 0)
        return;
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);
}

void diag_announce(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);
}

void diag_leave(int status)
{
    leave(first_to_fail(), status);
}

void explain(const char *format, ...)
{
    if (voice()->verbosity < 1)
        return;
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);
}
