/* progress: one line about long work, on a terminal only: bytes done, rate, time left. It appears after a second and leaves the cursor at
 * its start, so that whatever is printed next takes its place. */
#include "base/base.h"

#include <stdio.h>
#include <unistd.h>

enum { FIRST_AFTER = 1000, THEN_EVERY = 200 }; /* milliseconds */

static int64_t now_ms(void)
{
    return (int64_t)(1e3 * clock_seconds());
}

void progress_start(struct progress *p, const char *what, int64_t total)
{
    *p = (struct progress){.what = what, .total = total, .shows = !diag_is_quiet() && isatty(STDERR_FILENO), .start = now_ms()};
    p->next = p->start + FIRST_AFTER;
}

static void show_progress(const struct progress *p, int64_t now)
{
    double done = (double)p->done / 1e6, total = (double)p->total / 1e6, rate = done / ((double)(now - p->start) / 1e3);
    double left = total > done ? (total - done) / rate : 0;
    (void)fprintf(stderr, "%s: %.0f of %.0f MB, %.0f MB/s, %.0f s left\033[K\r", p->what, done, total, rate, left);
}

void progress_add(struct progress *p, int64_t bytes)
{
    if (!p)
        return;
    p->done += bytes;
    int64_t now = p->shows ? now_ms() : 0;
    if (!p->shows || now < p->next)
        return;
    show_progress(p, now);
    p->next = now + THEN_EVERY;
    p->shown = true;
}

void progress_end(const struct progress *p)
{
    if (p->shown)
        (void)fputs("\033[K", stderr);
}
