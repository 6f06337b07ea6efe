/* One input, one process: a refusal ends the process, and whatever it holds goes with it. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 20, SAID = 8192 };
#define ROOM ((rlim_t)4 << 30)

void (*fuzz_at_end)(void *, int status);

/* Sanitizers end the process with status 1, which is a refusal's, unless told to abort. Their limit stands in for ROOM, where shadow memory
 * does not fit. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096";
}
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=1";
}

static int memory_file(void)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0)
        fail("no file in memory");
    return fd;
}

const char *fuzz_file(struct arena *a, const uint8_t *data, size_t size)
{
    int fd = memory_file();
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, data + at, size - at);
        if (n <= 0)
            fail("no room for a file in memory");
        at += (size_t)n;
    }
    return arena_printf(a, "/proc/self/fd/%d", fd);
}

static bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
    return __has_feature(address_sanitizer);
#else
    return false;
#endif
}

static _Noreturn void child(const uint8_t *data, size_t size, int said)
{
    if (!sanitized())
        (void)setrlimit(RLIMIT_AS, &(struct rlimit){ROOM, ROOM});
    (void)signal(SIGABRT, SIG_DFL);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(LIMIT);
    if (!freopen("/dev/null", "w", stdout) || dup2(said, STDERR_FILENO) < 0)
        _exit(99);
    diag_setup("fuzz", -1);
    if (fuzz_at_end)
        diag_on_failure(fuzz_at_end, NULL);
    fuzz_one(data, size);
    if (fuzz_at_end)
        fuzz_at_end(NULL, 0);
    _exit(0);
}

/* What the child said, as text. */
static void read_said(int said, char *text)
{
    ssize_t n = pread(said, text, SAID - 1, 0);
    text[n > 0 ? n : 0] = '\0';
}

static bool starts_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

bool fuzz_survives(const uint8_t *data, size_t size)
{
    static int said = -1;
    static char text[SAID];
    int status;
    if (said < 0)
        said = memory_file();
    (void)fflush(NULL);
    if (ftruncate(said, 0) || lseek(said, 0, SEEK_SET))
        fail("a file in memory cannot be emptied");
    pid_t pid = fork();
    for (int tries = 0; pid < 0 && tries < 10; tries++, pid = fork())
        (void)sleep(1); /* a crowded machine */
    if (pid == 0)
        child(data, size, said);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue; /* libFuzzer's clock */
    if (pid < 0)
        fail("no process for an input");
    read_said(said, text);
    if (WIFEXITED(status) && WEXITSTATUS(status) <= 1 && !starts_with(text, "fuzz: out of memory"))
        return true;
    fprintf(stderr, "%s%s %d\n", text, WIFSIGNALED(status) ? "signal" : "exit status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}
