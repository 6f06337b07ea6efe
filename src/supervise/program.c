/* program: starts a job, and ends all processes that belong to it. Its descendants may leave its group, session and parent, as launchers'
 * daemons do: the kernel then reparents them to this process, the subreaper, so they are found by ancestry. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "supervise/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EACH = 20 };                       /* ms */
enum { ASKED = 2500, KILLED = 2000 };     /* ms for a launcher to end its job; for the system to end killed processes */
enum { OTHER_FILES = 4096, LINE = 4352 }; /* descriptors that a program does not inherit; bytes of a line of its maps */

static void nap(int milliseconds)
{
    (void)nanosleep(&(struct timespec){0, milliseconds * 1000000L}, NULL);
}

/* ---- start ---- */

static void own_pipe(int end[2])
{
    if (pipe2(end, O_CLOEXEC))
        fail("the job can't be started: %s", strerror(errno));
}

/* In the child, where only async-signal-safe calls are allowed. */
static _Noreturn void become(const char *command, int in, int out)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    bool placed = dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0;
    for (int fd = STDERR_FILENO + 1; fd < OTHER_FILES; fd++)
        (void)close(fd);
    if (placed)
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

struct program program_start(const char *command)
{
    int in[2], out[2];
    own_pipe(in);
    own_pipe(out);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = fork();
    if (pid == 0)
        become(command, in[0], out[1]);
    (void)close(in[0]);
    (void)close(out[1]);
    if (pid < 0)
        fail("the job can't be started: %s", strerror(errno));
    (void)fcntl(in[1], F_SETFL, O_NONBLOCK);
    return (struct program){.arena = arena_new(), .pid = pid, .in = in[1], .out = out[0]};
}

/* ---- files ---- */

static bool is_noted(const struct program *p, const char *path)
{
    for (int i = 0; i < p->shared.n; i++)
        if (strcmp(p->shared.at[i], path) == 0)
            return true;
    return false;
}

/* A line is "FROM-TO FLAGS OFFSET DEVICE INODE PATH". */
static void note_files_of(struct program *p, int pid)
{
    static const char shared[] = "/dev/shm/";
    char line[LINE];
    snprintf(line, sizeof line, "/proc/%d/maps", pid);
    FILE *f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *path = strstr(line, shared);
        if (!path || !strchr(path, '\n') || strstr(path, " (deleted)"))
            continue;
        *strchr(path, '\n') = '\0';
        if (!is_noted(p, path))
            VEC_PUSH(p->arena, &p->shared, arena_strdup(p->arena, path));
    }
    if (f)
        (void)fclose(f);
}

void program_note_files(struct program *p)
{
    struct arena *tmp = arena_new();
    const struct family all = family_find(tmp);
    for (int i = 0; i < all.n; i++)
        note_files_of(p, all.pid[i]);
    arena_free(tmp);
}

/* ---- end ---- */

/* True: none was left. Orphans become this process's children, so no children means no descendants. A list of processes would miss some
 * that start meanwhile. */
static bool reap(void)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        continue;
    return pid < 0 && errno == ECHILD;
}

static bool kill_own(void)
{
    struct arena *tmp = arena_new();
    const struct family f = family_find(tmp);
    for (int i = 0; i < f.n; i++)
        (void)kill(f.pid[i], SIGKILL);
    arena_free(tmp);
    return reap();
}

void program_end(struct program *p, bool asks)
{
    int status;
    if (!p->pid)
        return;
    program_note_files(p);
    if (asks && !program_has_ended(p, &status)) {
        (void)kill(p->pid, SIGTERM);
        for (int waited = 0; waited < ASKED && !program_has_ended(p, &status); waited += EACH)
            nap(EACH);
    }
    for (int waited = 0; waited < KILLED && !kill_own(); waited += EACH)
        nap(EACH);
    (void)close(p->in);
    for (int i = 0; i < p->shared.n; i++)
        (void)unlink(p->shared.at[i]);
    arena_free(p->arena);
    *p = (struct program){.out = p->out};
}

void program_close(struct program *p)
{
    program_end(p, false);
    (void)close(p->out);
}

/* It is reaped with the others. */
bool program_has_ended(struct program *p, int *status)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0)
        return false;
    *status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
    return true;
}

const char *program_status(struct arena *a, int status)
{
    if (WIFSIGNALED(status))
        return arena_printf(a, "the job was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return arena_printf(a, "the job ended with status %d", WEXITSTATUS(status));
}
