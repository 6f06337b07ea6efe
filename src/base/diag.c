/* diag: everything people read when something goes wrong, and the hooks that clean up before the process ends.
 *
 * fail() is for what the user can mend, fail_usage() for a wrong command line, bug_at() for a broken invariant of ours. Each message
 * is one line on stderr, written with one call so that lines of several ranks don't mix. Hooks run newest first, once: a hook that
 * fails itself ends the process without running again. Rank threads may fail at the same time: the first one wins, the others wait.
 */
#include "base/base.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_HOOKS = 32, MAX_LINE = 4096 };

struct hook {
    void (*run)(void *, int status);
    void *data;
};

static const char *program_name = "tpc";
static int verbosity_level;
static struct hook hooks[MAX_HOOKS];
static int hook_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t failing_thread;
static bool failing;
static int give_way;
static const char *place;
static _Thread_local const char *progress;
static _Thread_local struct trap {
    jmp_buf at;
    char sentence[MAX_LINE];
} * trap; /* NULL: a failure ends the program */

void diag_setup(const char *program, int verbosity)
{
    program_name = program;
    verbosity_level = verbosity;
}

bool diag_is_quiet(void)
{
    return verbosity_level < 0;
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

void diag_on_failure(void (*run)(void *, int status), void *data)
{
    pthread_mutex_lock(&lock);
    bool room = hook_count < MAX_HOOKS;
    if (room)
        hooks[hook_count++] = (struct hook){run, data};
    pthread_mutex_unlock(&lock);
    require(room);
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

/* A hook that runs already still reads its data: its owner waits for the end. */
void diag_forget(void (*run)(void *, int status), void *data)
{
    diag_hold();
    for (int i = hook_count - 1; i >= 0; i--)
        if (hooks[i].run == run && hooks[i].data == data) {
            memmove(&hooks[i], &hooks[i + 1], (size_t)(hook_count - 1 - i) * sizeof hooks[0]);
            hook_count--;
            break;
        }
    diag_release();
}

/* One line, one write; control characters of hostile names are shown as '?'. */
static void print_line(const char *level, const char *format, va_list args)
{
    char line[MAX_LINE];
    const char *far = progress;
    int head = snprintf(line, sizeof line - 2, "%.64s: %.320s%s%.64s%s%s", program_name, place ? place : "", place ? ": " : "",
                        far ? far : "", far ? ": " : "", level);
    if (head < 0)
        return;
    size_t used = (size_t)head;
    int body = vsnprintf(line + used, sizeof line - 1 - used, format, args);
    if (body < 0)
        return;
    size_t length = strlen(line);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
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

static void run_hooks(int status)
{
    while (hook_count > 0) {
        struct hook h = hooks[--hook_count];
        h.run(h.data, status);
    }
}

/* exit() would run handlers of libraries whose threads may still be busy: flush what is ours and leave. */
static _Noreturn void leave(bool first, int status)
{
    if (first)
        run_hooks(status);
    (void)fflush(NULL);
    _Exit(status);
}

static _Noreturn void end_with_message(int status, const char *format, va_list args)
{
    if (trap) {
        (void)vsnprintf(trap->sentence, sizeof trap->sentence, format, args);
        longjmp(trap->at, 1);
    }
    bool first = first_to_fail();
    print_line("", format, args);
    leave(first, status);
}

const char *diag_try(struct arena *a, void (*work)(void *), void *data)
{
    struct trap own, *volatile outer = trap;
    const char *volatile sentence = NULL;
    trap = &own;
    if (setjmp(own.at) == 0)
        work(data);
    else
        sentence = arena_strdup(a, own.sentence);
    trap = outer;
    return sentence;
}

void fail(const char *format, ...)
{
    va_list args;
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
    bool first = first_to_fail();
    char level[256];
    (void)snprintf(level, sizeof level, "bug at %s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    print_line(level, format, args);
    va_end(args);
    if (first)
        run_hooks(134);
    (void)signal(SIGABRT, SIG_DFL);
    abort();
}

void diag_tell(const char *format, ...)
{
    if (verbosity_level < 0)
        return;
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);
}

void explain(const char *format, ...)
{
    if (verbosity_level < 1)
        return;
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);
}
