/* tpc-shard for the command server: its main under another name. */
#include "tests/fuzz/serve.h"

#define main serve_shard
#include "cli/shard_main.c" /* NOLINT */
