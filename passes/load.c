/* load: a model file becomes IR.
 *
 * Provides PROP_LOADED: attributes are decoded by the ops' rows, nodes follow the opset that will be emitted, functions of the model are
 * inlined, shape operands are still edges. Everything about files is in src/onnx; a dry run needs no weight data. */
#include "passes/pass.h"
#include "onnx/onnx.h"

void pass_load(struct compile *c)
{
    struct load_options options = {.need_data = false};
    require(c->model_path);
    c->graph = onnx_load(c->arena, alg_new(c->arena), c->model_path, &options);
}
