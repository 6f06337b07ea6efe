/* The program tpc-shard: a command line, its streams and its signals. */
#include "cli/shard.h"

int main(int argc, char **argv)
{
    diag_setup("tpc-shard", 0);
    streams_start();
    stack_start();
    signal_watch(true);
    shard_command(argc, argv);
    streams_end();
    return 0;
}
