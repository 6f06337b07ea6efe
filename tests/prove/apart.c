/* apart: a body in a process of its own. The verdict comes back in shared memory, what was printed in a file in memory. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "tests/prove/prove.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

const char *proof_kind_name(enum proof_kind kind)
{
    static const char *const name[] = {"equal", "differs", "refused", "broken"};
    return name[kind];
}

static _Noreturn void run_child(void (*body)(void *, struct proof *), void *data, struct proof *shared, int said)
{
    (void)signal(SIGBUS, SIG_DFL); /* the thread that would tell of it stays in the parent */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (dup2(said, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0)
        _exit(1);
    (void)alarm(PROVE_SECONDS);
    body(data, shared);
    (void)fflush(NULL);
    _exit(0);
}

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            fail("a trial's process can't be waited for: %s", strerror(errno));
    return status;
}

static char *read_said(struct arena *a, int said)
{
    off_t size = lseek(said, 0, SEEK_END), at = 0;
    char *text = arena_alloc(a, (size_t)size + 1);
    for (ssize_t n = 1; at < size && n > 0; at += n)
        n = pread(said, text + at, (size_t)(size - at), at);
    return text;
}

/* A body that ended well has said itself what is to be said, if anything. */
static void conclude(struct proof *p, int status, const char *said)
{
    int length = (int)strcspn(said, "\n");
    if (status != 0) {
        p->kind = WIFSIGNALED(status) ? PROOF_BROKEN : PROOF_REFUSED;
        p->worst = INFINITY;
        p->said[0] = '\0';
    }
    if (p->kind == PROOF_EQUAL || p->said[0])
        return;
    if (length == 0 && WIFSIGNALED(status))
        (void)snprintf(p->said, sizeof p->said, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        (void)snprintf(p->said, sizeof p->said, "%.*s", length, said);
}

char *prove_apart(struct arena *a, void (*body)(void *, struct proof *), void *data, struct proof *out)
{
    struct proof *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int said = memfd_create("said", MFD_CLOEXEC);
    if (shared == MAP_FAILED || said < 0)
        fail("no memory to share with a trial: %s", strerror(errno));
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(body, data, shared, said);
    if (child < 0)
        fail("no process for a trial: %s", strerror(errno));
    int status = wait_for(child);
    char *text = read_said(a, said);
    *out = *shared;
    conclude(out, status, text);
    (void)munmap(shared, sizeof *shared);
    (void)close(said);
    return text;
}
