/* signal: signals that end a program, reported in a sentence.
 *
 * A request to end (^C, kill, a terminal that closes) is handled like a failure: half-written files are removed. A separate thread waits
 * for it, because a signal handler may not do that work.
 *
 * A mapped file that another program truncates while it is read arrives as SIGBUS. Its name is looked up by address in the system's list of
 * maps; only calls that POSIX allows in a handler are made until the waiting thread takes over. */
#include "base/base.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED /* sanitizers report faults themselves */
#endif
enum { WAITER_STACK = 1 << 18 };
enum { CUT = SIGUSR2 }; /* the handler of SIGBUS wakes the waiting thread with this signal */
enum { ENDING = 3 };
static const int ending_signal[ENDING] = {SIGINT, SIGTERM, SIGHUP};
static pthread_t waiter;
static sigset_t waited;
static char cut_line[4096]; /* of the list of maps: the truncated file */
static _Atomic(const char *) cut_path;

/* ---- the file that an address was mapped from, for a signal handler -------------------------------------------------------------- */

static uintptr_t read_hex(const char **at)
{
    uintptr_t n = 0;
    for (;; (*at)++) {
        const char c = **at;
        if (c >= '0' && c <= '9')
            n = n * 16 + (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            n = n * 16 + (uintptr_t)(c - 'a' + 10);
        else
            return n;
    }
}

/* A line of the list is "FROM-TO flags offset device inode    /path". */
static const char *path_of_line(const char *line, uintptr_t address)
{
    uintptr_t from = read_hex(&line), to = *line == '-' ? (line++, read_hex(&line)) : 0;
    const char *path = strchr(line, '/');
    return from <= address && address < to && path ? path : NULL;
}

/* The next line of fd, cut to n - 1 characters; false at the end. */
static bool next_line(int fd, char *line, size_t n)
{
    size_t used = 0;
    char c;
    while (read(fd, &c, 1) == 1 && c != '\n')
        if (used < n - 1)
            line[used++] = c;
    line[used] = '\0';
    return used > 0;
}

/* The file that contains the fault's address; NULL: none, or unknown. */
static const char *faulty_file(const siginfo_t *info)
{
    const char *path = NULL;
    int fd = info->si_code == BUS_ADRERR ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && !path && next_line(fd, cut_line, sizeof cut_line))
        path = path_of_line(cut_line, (uintptr_t)info->si_addr);
    if (fd >= 0)
        (void)close(fd);
    return path;
}

/* ---- a library that ran out of memory ------------------------------------------------------------------------------------------------ */

/* Libraries without memory crash or abort. If a limit of the process leaves little memory, that is the likely reason. */
enum { LITTLE = 128 << 20 };
static atomic_int fault; /* the signal, while the waiting thread judges it */

#ifndef SANITIZED
static void judge_fault(int number)
{
    bool own = pthread_equal(pthread_self(), waiter) != 0;
    fault = number;
    (void)pthread_kill(waiter, CUT);
    while (fault && !own)
        (void)poll(NULL, 0, 1);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

#endif

static void tell_cut_file(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *path = faulty_file(info);
    if (!path) {
#ifndef SANITIZED
        judge_fault(number);
#else
        (void)signal(number, SIG_DFL);
        (void)raise(number);
#endif
        return;
    }
    cut_path = path;
    (void)pthread_kill(waiter, CUT);
    for (;;)
        (void)pause();
}

static _Atomic(const char *) doing;

void signal_while(const char *what)
{
    doing = what;
}

static void (*_Atomic farewell)(void *);
static void *farewell_data;

static void say_farewell(void)
{
    void (*say)(void *) = farewell;
    if (say)
        say(farewell_data);
}

/* Returns if memory is not the reason. The failed code may hold locks that a message needs, so the time is limited. */
static void tell_fault(int number)
{
    struct available room = available_addresses(), data = available_data();
    if (data.bytes < room.bytes)
        room = data;
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(5);
    if (room.bytes >= LITTLE) {
        const char *what = doing;
        diag_announce("ended by signal %d (%s)%s%s", number, strsignal(number), what ? ", while " : "", what ? what : "");
        say_farewell();
        return;
    }
    fail("out of memory: a library ended by signal %d (%s) where %s has %.1f MiB left", number, strsignal(number), room.limit,
         (double)room.bytes / 1048576);
}

/* ---- the waiting thread ---------------------------------------------------------------------------------------------------------- */

static atomic_bool soft, asked;            /* keep a request to end for signal_asked; one came */
static atomic_bool interruptible, stopped; /* keep SIGINT for signal_interrupted; one came */
static_assert(ATOMIC_BOOL_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "a signal handler sets them");

/* The program continues: the fault has another reason and is raised again, or the request is kept. */
static bool goes_on(int number)
{
    bool judged = number == CUT && fault;
    if (judged)
        fault = 0;
    if (number == SIGINT && interruptible)
        return !atomic_exchange(&stopped, true);
    return judged || (number != CUT && number != SIGHUP && soft && !atomic_exchange(&asked, true));
}

static void *wait_for_end(void *unused)
{
    int number = 0;
    (void)unused;
    do {
        (void)sigwait(&waited, &number);
        if (fault)
            tell_fault(fault);
    } while (goes_on(number));
    if (number == CUT)
        fail("%s: was cut short while it was read", cut_path);
    fail("ended by signal %d (%s)", number, strsignal(number));
}

static void note_request(int number)
{
    (void)number;
    asked = true;
}

/* Without a waiting thread, a one-shot handler takes requests. */
void signal_soften(void)
{
    const struct sigaction once = {.sa_handler = note_request, .sa_flags = (int)SA_RESETHAND};
    soft = true;
    for (int i = 0; i < 2; i++)
        if (sigismember(&waited, (const int[]){SIGINT, SIGTERM}[i]) != 1)
            (void)sigaction((const int[]){SIGINT, SIGTERM}[i], &once, NULL);
}

bool signal_asked(void)
{
    return asked;
}

void signal_catch_interrupts(void)
{
    interruptible = true;
}

bool signal_interrupted(void)
{
    return atomic_exchange(&stopped, false);
}

static void watch_faults(void)
{
    const struct sigaction cut = {.sa_sigaction = tell_cut_file, .sa_flags = SA_SIGINFO};
    (void)sigaction(SIGBUS, &cut, NULL);
#ifndef SANITIZED
    const struct sigaction judged = {.sa_handler = judge_fault};
    for (int i = 0; i < 4; i++)
        (void)sigaction((const int[]){SIGSEGV, SIGABRT, SIGILL, SIGFPE}[i], &judged, NULL);
#endif
}

static void end_by(int number)
{
    say_farewell();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void signal_farewell(void (*say)(void *), void *data)
{
    const struct sigaction end = {.sa_handler = end_by};
    struct sigaction old;
    void (*const nothing)(void *) = NULL; /* clang rejects a bare NULL for an atomic */
    farewell = nothing;
    farewell_data = data;
    farewell = say;
    for (int i = 0; say && i < ENDING; i++)
        if (sigismember(&waited, ending_signal[i]) != 1 && sigaction(ending_signal[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(ending_signal[i], &end, NULL);
    if (say)
        watch_faults();
}

/* With a small stack: memory may be short. */
static bool start_waiter(void)
{
    pthread_attr_t small;
    bool sized = pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, WAITER_STACK) == 0;
    return sized && pthread_create(&waiter, &small, wait_for_end, NULL) == 0;
}

void signal_watch(bool ending)
{
    (void)sigemptyset(&waited);
    (void)sigaddset(&waited, CUT);
    for (int i = 0; ending && i < ENDING; i++)
        (void)sigaddset(&waited, ending_signal[i]);
    (void)pthread_sigmask(SIG_BLOCK, &waited, NULL);
    if (start_waiter())
        watch_faults();
    else
        (void)pthread_sigmask(SIG_UNBLOCK, &waited, NULL);
}
