/* tpc-shard for the command server: its main under another name. */
#include "tests/fuzz/serve.h"

#define main serve_shard
#include "cli/tpc-shard.c" /* NOLINT */
