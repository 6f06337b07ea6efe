/* op/rule_text: factor rules as text, and back.
 *
 *     (b0 m k)(k n) -> (b0 m n)  k: sum contracted  linear 0, 1
 *
 * An operand is its dimensions in parentheses, "-" when absent, with + before a term. A dimension is factors; a product stands in
 * parentheses, parts laid end to end are joined by |, 1 is no factor. ! marks a whole factor, @ one whose index means something. Notes
 * follow, two spaces apart: a factor's properties, linear sets (members joined by +), moves, operands in which it rises or falls, those it
 * joins, group, query, size attributes. A factor whose size no dimension says alone has it in its note. Reading, "b.." stands for as many
 * dimensions as the type leaves, aligned at the right. */
#ifndef TPC_OP_RULE_TEXT_H
#define TPC_OP_RULE_TEXT_H

#include "op/op.h"

/* Properties of factors that have a word of their own; the others are marks. */
enum { RULE_FLAGS = 5 };
struct flag_name {
    unsigned flag;
    const char *name;
};
extern const struct flag_name rule_flag[RULE_FLAGS];

#endif
