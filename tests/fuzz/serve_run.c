/* tpc-run for the command server: its main under another name. */
#include "tests/fuzz/serve.h"

#define main serve_run
#include "cli/tpc-run.c" /* NOLINT */
