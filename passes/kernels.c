/* kernels: fusion for speed, in tpc-run only; what it makes is never written to a file. Breaks the canonical form: rules don't know the
 * fused ops. Each fusion is a file of src/run that says what it matches and why the result is the same. */
#include "passes/pass.h"
#include "run/run.h"

void pass_kernels(struct compile *c)
{
    fuse_weights(c->graph);
    fuse_quantized(c->graph);
    if (!c->deterministic)
        fuse_attention(c->graph);
    fuse_chains(c->graph);
}
