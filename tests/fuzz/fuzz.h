/* fuzz: what the targets share with the two programs that drive them, replay.c and guided.c. */
#ifndef TPC_FUZZ_H
#define TPC_FUZZ_H

#include "base/base.h"

#include <stddef.h>
#include <stdint.h>

struct options;

/* A target: what the programs do with a file of these bytes. It may end the process. */
void fuzz_one(const uint8_t *data, size_t size);
/* A file of these bytes, in memory, under a name that lasts as long as the process. */
const char *fuzz_file(struct arena *, const uint8_t *data, size_t size);

/* compile.c: what tpc-shard -n does. */
void fuzz_compile(struct arena *, const struct options *);

/* child.c: runs the target on an input in a process of its own. An input may be refused or accepted, and nothing else: a signal, another
 * exit status, too much time or memory gives false, and why on stderr. */
bool fuzz_survives(const uint8_t *data, size_t size);
/* What the child does when the target has ended, refused or not; NULL: nothing. */
extern void (*fuzz_at_end)(void *, int status);

#endif
