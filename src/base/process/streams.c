/* streams: the standard streams of a program. What can't be printed is a failure, even if no caller checks the status of printf. A write to
 * a closed pipe, or beyond a limit on sizes, fails like any other instead of ending the program by a signal. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Occupies a stream that was closed at the program's start, so that no later file takes its descriptor. Using it fails. */
static void occupy(int descriptor)
{
    if (fcntl(descriptor, F_GETFD) < 0)
        (void)open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void streams_start(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        occupy(i);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
}

void streams_flush(void)
{
    if (ferror(stdout) || fflush(stdout) != 0)
        fail("stdout: can't be written: %s", strerror(errno));
}

/* Some file systems report a full disk only on close. */
void streams_end(void)
{
    streams_flush();
    int copy = dup(STDOUT_FILENO);
    if (copy >= 0 && close(copy) != 0)
        fail("stdout: can't be written: %s", strerror(errno));
}
