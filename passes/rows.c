/* rows: passes.def as a table. It is separate from the manager because passes call the manager too, on trial plans and on subgraphs. */
#include "passes/pass.h"

const struct pass pass_rows[] = {
#define PASS(name, purpose, needs, gives, breaks) {#name, purpose, pass_##name, needs, gives, breaks},
#include "passes/passes.def"
#undef PASS
    {NULL, NULL, NULL, 0, 0, 0}};
