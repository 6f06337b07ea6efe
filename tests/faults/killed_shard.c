/* killed_shard N ARGUMENT...: tpc-shard, which is killed where it would rename a file for the Nth time. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int killed_shard(int argc, char **argv);
#define main killed_shard
#include "cli/shard_main.c" /* NOLINT */
#undef main

static long left;

/* Takes the place of the C library's. */
int rename(const char *from, const char *to)
{
    if (--left == 0)
        (void)kill(getpid(), SIGKILL);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    left = strtol(argv[1], NULL, 10);
    argv[1] = argv[0];
    return killed_shard(argc - 1, argv + 1);
}
