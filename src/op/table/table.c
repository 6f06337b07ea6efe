/* table: the rows of schemas/ops.def as data, op_rows, which src/op/registry.c reads.
 *
 * The functions of a row are bound at compile time; a row whose function does not exist fails to link and names it. */
#include "op/table/table.h"

#include "kern/table.h"
#include "op/op.h"

#define infer_none NULL
#define value_none NULL
#define rule_none NULL
#define lower_none NULL
#define expand_none NULL
#define kern_none NULL

const struct op_row op_rows[] = {
#define OP(op_name, op_domain, op_since, in, out, attr, i, v, r, l, x, k, op_flags) \
    {.inputs = in,                                                                  \
     .outputs = out,                                                                \
     .attributes = attr,                                                            \
     .op = {.name = #op_name,                                                       \
            .domain = op_domain,                                                    \
            .since = op_since,                                                      \
            .flags = op_flags,                                                      \
            .infer = infer_##i,                                                     \
            .value = value_##v,                                                     \
            .rule = rule_##r,                                                       \
            .lower = lower_##l,                                                     \
            .expand = expand_##x,                                                   \
            .kernel = kern_##k,                                                     \
            .infer_name = #i,                                                       \
            .value_name = #v,                                                       \
            .rule_name = #r,                                                        \
            .lower_name = #l,                                                       \
            .expand_name = #x,                                                      \
            .kernel_name = #k}},
#include "schemas/ops.def"
#undef OP
    {.inputs = NULL}};
