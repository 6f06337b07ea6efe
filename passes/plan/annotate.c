/* annotate: writes the model with the plan as ONNX device annotations (--annotate). A configuration that the plan follows keeps its
 * name. */
#include "onnx/onnx.h"
#include "passes/pass.h"
#include "plan/constrain/constrain.h"

void pass_annotate(struct compile *c)
{
    if (!c->options->annotate)
        return;
    const struct configuration *followed = c->plan->configuration;
    struct annotation what = {.name = followed ? followed->name : arena_printf(c->arena, "tp%d", c->options->ranks),
                              .devices = c->options->ranks,
                              .ir_version = c->graph->ir_version,
                              .find = onnx_annotation_of,
                              .data = c->plan->space};
    if (c->text)
        fail("%s: is a graph in text form, expected an ONNX model to annotate", c->model_path);
    onnx_annotate(c->model_path, c->options->annotate, &what);
}
