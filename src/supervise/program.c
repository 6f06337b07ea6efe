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

enum { EACH = 20 }; /* ms */
/* ms for a launcher to end its job, if asked and by itself; for the system to end killed processes */
enum { ASKED = 1000, ENDS = 500, KILLED = 2000 };
enum { OTHER_FILES = 4096, LINE = 4352 }; /* descriptors that a program does not inherit; bytes of a line of its maps */

static void nap(int milliseconds)
{
    (void)nanosleep(&(struct timespec){0, milliseconds * 1000000L}, NULL);
}

/* ---- start ---- */

static void close_both(const int end[2])
{
    (void)close(end[0]);
    (void)close(end[1]);
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
    if (pipe2(in, O_CLOEXEC))
        return (struct program){.error = errno};
    if (pipe2(out, O_CLOEXEC)) {
        const int error = errno;
        close_both(in);
        return (struct program){.error = error};
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = fork();
    if (pid == 0)
        become(command, in[0], out[1]);
    if (pid < 0) {
        const int error = errno;
        close_both(in);
        close_both(out);
        return (struct program){.error = error};
    }
    (void)close(in[0]);
    (void)close(out[1]);
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

void program_end(struct program *p, enum program_end how)
{
    const int within = how == PROGRAM_ASK ? ASKED : how == PROGRAM_WAIT ? ENDS : 0;
    int status;
    if (!p->pid)
        return;
    program_note_files(p);
    if (how == PROGRAM_ASK && !program_has_ended(p, &status))
        (void)kill(p->pid, SIGTERM);
    for (int waited = 0; waited < within && !program_has_ended(p, &status); waited += EACH)
        nap(EACH);
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
    if (!p->pid)
        return;
    program_end(p, PROGRAM_KILL);
    (void)close(p->out);
}

/* It is reaped with the others. A program that could not be started has failed. */
bool program_has_ended(struct program *p, int *status)
{
    siginfo_t info = {0};
    *status = 1 << 8;
    if (!p->pid)
        return true;
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
