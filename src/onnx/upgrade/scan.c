/* Scan of opset 8 runs its body over the sequences of a batch: dimension 0 of every operand is the batch. It becomes a Scan over the batch,
 * whose body is a current Scan over each row's sequence. */
#include "onnx/upgrade/upgrade.h"

#include <string.h>

typedef Onnx__NodeProto proto;

static Onnx__ValueInfoProto **infos_of(struct upgrade *s, size_t n, char **name)
{
    Onnx__ValueInfoProto **list = NEWN(s->im->tmp, Onnx__ValueInfoProto *, n + 1);
    for (size_t i = 0; i < n; i++) {
        list[i] = NEW(s->im->tmp, Onnx__ValueInfoProto);
        onnx__value_info_proto__init(list[i]);
        list[i]->name = name[i];
    }
    return list;
}

static char **fresh_names(struct upgrade *s, size_t n, const char *display)
{
    char **name = NEWN(s->im->tmp, char *, n + 1);
    for (size_t i = 0; i < n; i++)
        name[i] = name_scope_fresh(s->im, upgrade_display_name(s, display));
    return name;
}

/* The node over the sequence of one row. Its axes, which opset 8 lacks, mark it as a current Scan. */
static proto *over_sequence(struct upgrade *s)
{
    proto *inner = NEW(s->im->tmp, proto);
    *inner = *s->node;
    inner->n_input = s->node->n_input - 1;
    inner->input = fresh_names(s, inner->n_input, "of_row");
    inner->output = fresh_names(s, inner->n_output, "row");
    struct upgrade of = *s;
    of.node = inner;
    Onnx__AttributeProto *directions = upgrade_remove(&of, "directions", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS),
                         *axes = proto_new_attribute(s->im->tmp, "scan_input_axes", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    const Onnx__AttributeProto *count = proto_attribute(inner, "num_scan_inputs");
    if (!count || count->i < 1 || (uint64_t)count->i > inner->n_input)
        fail("%s: %s has no proper num_scan_inputs", s->im->path, s->where);
    axes->n_ints = (size_t)count->i;
    axes->ints = NEWN(s->im->tmp, int64_t, axes->n_ints);
    Onnx__AttributeProto **list = NEWN(s->im->tmp, Onnx__AttributeProto *, inner->n_attribute + 2);
    memcpy(list, inner->attribute, inner->n_attribute * sizeof *list);
    list[inner->n_attribute++] = axes;
    if (directions) {
        directions->name = arena_strdup(s->im->tmp, "scan_input_directions");
        list[inner->n_attribute++] = directions;
    }
    inner->attribute = list;
    return inner;
}

void upgrade_scan(struct upgrade *s)
{
    if (proto_attribute(s->node, "scan_input_axes"))
        return;
    if (s->node->n_input < 2 || *s->node->input[0])
        fail("%s: %s gives the lengths of its sequences, which tpc does not handle", s->im->path, s->where);
    proto **node = NEWN(s->im->tmp, proto *, 1), *inner = node[0] = over_sequence(s);
    s->im->own = inner;
    Onnx__GraphProto *rows = NEW(s->im->tmp, Onnx__GraphProto);
    onnx__graph_proto__init(rows);
    rows->name = arena_strdup(s->im->tmp, "row");
    rows->n_node = 1;
    rows->node = node;
    rows->n_input = inner->n_input;
    rows->input = infos_of(s, inner->n_input, inner->input);
    rows->n_output = inner->n_output;
    rows->output = infos_of(s, inner->n_output, inner->output);
    Onnx__AttributeProto **list = NEWN(s->im->tmp, Onnx__AttributeProto *, 3),
                         *all = proto_new_attribute(s->im->tmp, "num_scan_inputs", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    list[0] = proto_new_attribute(s->im->tmp, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
    list[0]->g = rows;
    all->has_i = 1;
    all->i = (int64_t)inner->n_input;
    list[1] = all;
    s->node->attribute = list;
    s->node->n_attribute = 2;
    s->node->input++;
    s->node->n_input--;
}
