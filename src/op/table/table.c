/* table: op_rows, which src/op/registry.c reads.
 *
 * The functions of a row are bound at compile time; a row whose function does not exist fails to link and names it. */
#include "op/table/table.h"

#include "kern/table.h"
#include "op/op.h"
#include "op/rule/rule.h"

#define OP(op_name, op_domain, op_since, op_inputs, op_outputs, op_attributes, ...) \
    {.inputs = op_inputs,                                                           \
     .outputs = op_outputs,                                                         \
     .attributes = op_attributes,                                                   \
     .op = {.name = #op_name, .domain = op_domain, .since = op_since, __VA_ARGS__}},
#define INFER(f) .infer = infer_##f, .infer_name = #f,
#define VALUE(f) .value = value_##f, .value_name = #f,
#define RULE_TEXT(text) .rule = rule_by_text, .rule_text = text, .rule_name = "text",
#define OVER(f) .over = over_##f, .over_name = #f,
#define RULE(f) .rule = rule_##f, .rule_name = #f,
#define LOWER(f) .lower = lower_##f, .lower_name = #f,
#define BACKWARD(f) .backward = backward_##f, .backward_name = #f,
#define NO_BACKWARD(why) .no_backward = why,
#define SLIDE(f) .slide = slide_##f,
#define EXPAND(f) .expand = expand_##f, .expand_name = #f,
#define KERNEL(f) .kernel = kern_##f, .kernel_name = #f,
#define TAKES(types) .takes = types,
#define FLAGS(op_flags) .flags = op_flags,
#define CODES(n) .codes = n,

const struct op_row op_rows[] = {
#include "schemas/ops.def"
    {.inputs = NULL}};
