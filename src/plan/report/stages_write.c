/* stages_write: writes plan.json of a model in stages (schemas/stages.schema.json): the cuts, and the plan of each stage. */
#include "plan/input/input.h"
#include "plan/report/report.h"

static json_t *received_array(const struct stage_plan *p, int stage)
{
    const struct graph *source = p->map.g, *own = p->made[stage].source;
    json_t *all = json_array();
    for (int i = source->inputs.n; i < own->inputs.n; i++) {
        const struct value *v = own->inputs.at[i];
        json_array_append_new(all,
                              json_pack("{s:o, s:i, s:f}", "value", json_text_of(v->name), "stage", stage_sender(p, v->name), "bytes",
                                        p->prices.bytes[graph_find(source, v->name)->id]));
    }
    return all;
}

static json_t *stage_object(const struct stage_plan *p, int stage)
{
    const struct stage_made *made = &p->made[stage];
    return json_pack("{s:i, s:o, s:f, s:o}", "nodes", made->source->nodes.n, "receives", received_array(p, stage), "receive_seconds",
                     stage_receives(p, stage), "plan",
                     plan_object(made->source, made->global, made->options, made->plan, stage * made->options->ranks));
}

char *plan_json_stages(const struct graph *source, const struct options *options, const struct stage_plan *p)
{
    json_t *first = plan_object(p->made[0].source, p->made[0].global, options, p->made[0].plan, 0), *root = json_object(),
           *all = json_array();
    static const char *const shared[] = {"version", "source", "tp", "options", "dims", "workload", "machine"};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        json_object_set(root, shared[i], json_object_get(first, shared[i]));
    json_object_set_new(root, "pp", json_integer(p->cut.stages));
    json_object_set_new(root, "crossing_bytes", json_real(p->cut.bytes));
    for (int i = 0; i < p->cut.stages; i++)
        json_array_append_new(all, stage_object(p, i));
    json_object_set_new(root, "stages", all);
    char *text = json_dump(source->arena, root, JSON_INDENT(1));
    json_decref(first);
    json_decref(root);
    return text;
}
