/* configuration: picks the ONNX device configuration of the model that the plan follows (src/plan/constrain/onnx_config.c). */
#include "passes/pass.h"
#include "plan/constrain/constrain.h"

void pass_configuration(struct compile *c)
{
    require(c->options && c->plan);
    plan_configuration(c->graph, c->options, c->plan);
}
