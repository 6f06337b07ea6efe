/* rule_condition: conditions in the texts of rules. */
#ifndef TPC_OP_RULE_CONDITION_H
#define TPC_OP_RULE_CONDITION_H

#include "op/rule/rule.h"

/* Whether all conditions in n characters of text, joined by " and ", hold. set: the dimensions that OVER names (src/op/rule/rule.h). */
bool rule_conditions_hold(struct graph *, const struct node *, uint32_t set, const char *text, size_t n);

#endif
