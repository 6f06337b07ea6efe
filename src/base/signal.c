/* signal: signals that end a program, reported in a sentence.
 *
 * A request to end (^C, kill, a terminal that closes) is handled like a failure: half-written files are removed. A thread of its own waits
 * for it, since a signal handler may not do that work.
 *
 * A mapped file that another program truncates while it is read arrives as SIGBUS. Its name is looked up by address in the system's list of
 * maps; only calls that POSIX allows in a handler are made until the waiting thread takes over. */
#include "base/base.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { CUT = SIGUSR2 }; /* what the handler of SIGBUS wakes the waiting thread with */
static pthread_t waiter;
static sigset_t waited;
static char cut_line[4096]; /* of the list of maps: the file that was cut short */
static const char *cut_path;

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

/* ---- the waiting thread ---------------------------------------------------------------------------------------------------------- */

static _Noreturn void tell_cut_file(int number, siginfo_t *info, void *context)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    (void)number;
    (void)context;
    while (fd >= 0 && !cut_path && next_line(fd, cut_line, sizeof cut_line))
        cut_path = path_of_line(cut_line, (uintptr_t)info->si_addr);
    (void)pthread_kill(waiter, CUT);
    for (;;)
        (void)pause();
}

static volatile sig_atomic_t soft, asked; /* a request to end is kept for signal_asked; there was one */

static void *wait_for_end(void *unused)
{
    int number = 0;
    (void)unused;
    do
        (void)sigwait(&waited, &number);
    while (number != CUT && number != SIGHUP && soft && !asked++);
    if (number == CUT)
        fail("%s: was cut short while it was read", cut_path ? cut_path : "a mapped file");
    fail("ended by signal %d (%s)", number, strsignal(number));
}

static void note_request(int number)
{
    (void)number;
    asked = 1;
}

/* Where no thread waits for requests, a handler of one use does. */
void signal_soften(void)
{
    const struct sigaction once = {.sa_handler = note_request, .sa_flags = (int)SA_RESETHAND};
    soft = 1;
    for (int i = 0; i < 2; i++)
        if (sigismember(&waited, (const int[]){SIGINT, SIGTERM}[i]) != 1)
            (void)sigaction((const int[]){SIGINT, SIGTERM}[i], &once, NULL);
}

bool signal_asked(void)
{
    return asked;
}

void signal_watch(bool ending)
{
    const struct sigaction action = {.sa_sigaction = tell_cut_file, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&waited);
    (void)sigaddset(&waited, CUT);
    for (int i = 0; ending && i < 3; i++)
        (void)sigaddset(&waited, (const int[]){SIGINT, SIGTERM, SIGHUP}[i]);
    (void)pthread_sigmask(SIG_BLOCK, &waited, NULL);
    if (pthread_create(&waiter, NULL, wait_for_end, NULL) == 0)
        (void)sigaction(SIGBUS, &action, NULL);
    else
        (void)pthread_sigmask(SIG_UNBLOCK, &waited, NULL);
}
