/* The programs as functions, for tests/fuzz/serve.c. */
#ifndef TESTS_FUZZ_SERVE_H
#define TESTS_FUZZ_SERVE_H

int serve_shard(int argc, char **argv);
int serve_run(int argc, char **argv);

#endif
