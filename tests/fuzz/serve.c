/* serve FOLDER: runs commands of tpc-shard and tpc-run in children that it forks: many in a second, where sanitizers make the start of a
 * program slow.
 *
 * A command arrives on stdin: bytes of memory that it may take, seconds of the processor, seconds in all, the words of the command line;
 * each ends with a zero byte, an empty one ends the command. The answer is a line on stdout: exit status (or minus the signal),
 * microseconds of the processor, KiB of memory. What the command said is in FOLDER/out and FOLDER/err. */
#include "tests/fuzz/serve.h"

#include "base/base.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 256 };
struct command {
    long long memory, cpu, wall;
    char *word[MAX_WORDS + 1];
    int n;
};

/* Sanitizers end a program with status 1, which is a refusal's, unless told to abort. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=8";
}
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=1";
}

/* The next word of a command: NULL at its end. */
static char *next_word(void)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t n = getdelim(&text, &room, '\0', stdin);
    if (n <= 0)
        exit(0);
    if (n > 1)
        return text;
    free(text);
    return NULL;
}

static long long next_number(void)
{
    char *text = next_word();
    require(text);
    long long n = atoll(text);
    free(text);
    return n;
}

static struct command read_command(void)
{
    struct command c = {.memory = next_number(), .cpu = next_number(), .wall = next_number()};
    for (char *word; (word = next_word());) {
        require(c.n < MAX_WORDS);
        c.word[c.n++] = word;
    }
    require(c.n > 0);
    return c;
}

/* Bytes of address space that this process has: much of it nothing but room that a sanitizer keeps free. */
static rlim_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    require(f && fscanf(f, "%llu", &pages) == 1);
    (void)fclose(f);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit(int what, rlim_t most)
{
    require(setrlimit(what, &(struct rlimit){most, most}) == 0);
}

static void redirect(int descriptor, const char *folder, const char *name, int flags)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    require(fd >= 0 && dup2(fd, descriptor) == descriptor);
}

static _Noreturn void child(struct command *c, const char *folder)
{
    redirect(STDIN_FILENO, "/dev", "null", O_RDONLY);
    redirect(STDOUT_FILENO, folder, "out", O_WRONLY | O_CREAT | O_TRUNC);
    redirect(STDERR_FILENO, folder, "err", O_WRONLY | O_CREAT | O_TRUNC);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, (rlim_t)c->cpu);
    limit(RLIMIT_AS, address_space() + (rlim_t)c->memory);
    (void)alarm((unsigned)c->wall);
    const char *base = strrchr(c->word[0], '/');
    bool runs = strcmp(base ? base + 1 : c->word[0], "tpc-run") == 0;
    int status = runs ? serve_run(c->n, c->word) : serve_shard(c->n, c->word);
    (void)fflush(NULL);
    _exit(status); /* what runs after main belongs to sanitizers and libraries, and takes long */
}

static void serve(struct command *c, const char *folder)
{
    struct rusage used;
    int status = 0;
    pid_t pid = fork();
    require(pid >= 0);
    if (pid == 0)
        child(c, folder);
    require(wait4(pid, &status, 0, &used) == pid);
    long long us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    printf("%d %lld %ld\n", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), us, used.ru_maxrss);
    require(fflush(stdout) == 0);
}

int main(int argc, char **argv)
{
    require(argc == 2);
    for (;;) {
        struct command c = read_command();
        serve(&c, argv[1]);
        for (int i = 0; i < c.n; i++)
            free(c.word[i]);
    }
}
