/* annotate: writes the model with the plan as ONNX device annotations (--annotate). A configuration that the plan follows keeps its
 * name. */
#include "onnx/onnx.h"
#include "passes/pass.h"
#include "plan/constrain/constrain.h"

static void write_annotated(const struct compile *c, struct annotation what)
{
    if (c->plan->configuration)
        what.name = c->plan->configuration->name;
    what.ir_version = c->graph->ir_version;
    if (c->text)
        fail("%s: is a graph in text form, expected an ONNX model to annotate", c->model_path);
    onnx_annotate(c->model_path, c->options->annotate, &what);
}

void annotate_stages(struct compile *c)
{
    int ranks = c->options->ranks;
    const char *first;
    struct space **space = NEWN(c->arena, struct space *, c->stages.n);
    for (int k = 0; k < c->stages.n; k++)
        space[k] = c->stages.at[k].plan->space;
    struct stage_annotation *all = stage_annotation_new(c->arena, c->stages.n, space);
    write_annotated(c,
                    (struct annotation){.name = arena_printf(c->arena, "tp%d.pp%d", ranks, c->stages.n),
                                        .devices = ranks * c->stages.n,
                                        .find = stage_annotation_of,
                                        .stage = stage_annotation_stage,
                                        .data = all});
    int parted = stage_annotation_parted(all, &first);
    if (parted)
        diag_tell("%s: %d of the model's nodes, as '%s', %s parts in several stages: annotated with the first stage", c->options->annotate,
                  parted, first, parted == 1 ? "has" : "have");
}

void pass_annotate(struct compile *c)
{
    if (c->options->annotate)
        write_annotated(c,
                        (struct annotation){.name = arena_printf(c->arena, "tp%d", c->options->ranks),
                                            .devices = c->options->ranks,
                                            .find = onnx_annotation_of,
                                            .data = c->plan->space});
}
