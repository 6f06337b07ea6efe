/* size_operands: restores size operands from types and attributes, once the node is final (emit).
 *
 * A Reshape target has constants for integers, 0 where the operand's dimension is kept, and -1 for one remaining entry if every other one
 * is usually above zero; if a remaining one may be zero, all are written out under allowzero. An Expand entry is 1 where the operand
 * already has the size. The remaining symbolic entries are computed from graph inputs. */
#include "op/emit/emit.h"

#include <string.h>

struct peers {
    struct graph *g;
    int ranks, rank;
    struct node *const *node;
};

static const struct type *in_type(const struct peers *p, int r)
{
    return &p->node[r]->in[0]->type;
}

static const struct type *out_type(const struct peers *p, int r)
{
    return &p->node[r]->out[0]->type;
}

/* dims[r][i]: dimension i of the output on rank r. */
static const struct dim ***output_dims(const struct peers *p)
{
    const struct dim ***dims = NEWN(p->g->arena, const struct dim **, p->ranks);
    for (int r = 0; r < p->ranks; r++) {
        dims[r] = NEWN(p->g->arena, const struct dim *, MAX_RANK);
        memcpy(dims[r], out_type(p, r)->dim, sizeof out_type(p, r)->dim);
    }
    return dims;
}

static struct value *as_tensor(const struct peers *p, int n, const struct dim ***dims)
{
    return shape_tensor_of_rank(p->g, p->ranks, p->rank, n, (const struct dim *const *const *)dims);
}

/* ---- Reshape ------------------------------------------------------------------------------------------------------------------ */

static bool any_zero(const struct peers *p)
{
    for (int r = 0; r < p->ranks; r++)
        for (int d = 0; d < out_type(p, r)->rank; d++)
            if (dim_equals(out_type(p, r)->dim[d], 0))
                return true;
    return false;
}

static bool peers_agree(const struct peers *p, int d)
{
    for (int r = 0; r < p->ranks; r++)
        if (!dim_is_int(out_type(p, r)->dim[d], NULL))
            return false;
    return true;
}

static bool entry_kept(const struct peers *p, int d)
{
    for (int r = 0; r < p->ranks; r++)
        if (d >= in_type(p, r)->rank || in_type(p, r)->dim[d] != out_type(p, r)->dim[d])
            return false;
    return true;
}

/* Usually above zero: if one of them is 0 after all, the remaining entry still follows from the expressions. */
static bool others_above_zero(const struct peers *p, int entry)
{
    for (int r = 0; r < p->ranks; r++)
        for (int d = 0; d < out_type(p, r)->rank; d++)
            if (d != entry && dim_usual_lo(p->g->alg, out_type(p, r)->dim[d]) < 1)
                return false;
    return true;
}

static void set_entry(const struct peers *p, const struct dim ***dims, int d, int64_t k)
{
    for (int r = 0; r < p->ranks; r++)
        dims[r][d] = dim_int(p->g->alg, k);
}

static bool may_be_zero(const struct peers *p, int d)
{
    for (int r = 0; r < p->ranks; r++)
        if (out_type(p, r)->dim[d]->lo < 1)
            return true;
    return false;
}

/* Writes entries that follow from the operand as 0 and -1. False: a remaining entry may be zero at run time. */
static bool shorten_target(const struct peers *p, const struct dim ***dims)
{
    int open = 0, last = -1;
    bool zero = false;
    for (int d = 0; d < out_type(p, 0)->rank; d++) {
        if (peers_agree(p, d))
            continue;
        if (entry_kept(p, d)) {
            set_entry(p, dims, d, 0);
            continue;
        }
        open++;
        last = d;
        zero |= may_be_zero(p, d);
    }
    if (open != 1 || !others_above_zero(p, last))
        return !zero;
    set_entry(p, dims, last, -1);
    return true;
}

static struct value *reshape_target(const struct peers *p, struct node *copy)
{
    const struct dim ***dims = output_dims(p);
    bool zero = any_zero(p) || !shorten_target(p, dims);
    attr_set_int(copy, "allowzero", zero);
    return as_tensor(p, out_type(p, 0)->rank, zero ? output_dims(p) : dims);
}

/* ---- Expand, ConstantOfShape ------------------------------------------------------------------------------------------------------ */

static bool already_wide(const struct peers *p, int d)
{
    for (int r = 0; r < p->ranks; r++) {
        int at = d - (out_type(p, r)->rank - in_type(p, r)->rank);
        if (at < 0 || in_type(p, r)->dim[at] != out_type(p, r)->dim[d])
            return false;
    }
    return true;
}

static struct value *output_shape(const struct peers *p, bool broadcasts)
{
    const struct dim ***dims = output_dims(p);
    int rank = out_type(p, 0)->rank;
    for (int d = 0; broadcasts && d < rank; d++)
        if (!peers_agree(p, d) && already_wide(p, d))
            set_entry(p, dims, d, 1);
    return as_tensor(p, rank, dims);
}

static struct value *type_operand(const struct peers *p, struct node *copy, int operand)
{
    if (operand == 0)
        return output_shape(p, false);
    return strcmp(copy->optype, "Reshape") == 0 ? reshape_target(p, copy) : output_shape(p, true);
}

/* ---- DIMS attributes --------------------------------------------------------------------------------------------------------------- */

/* Operands that are scalars in the standard; all others are vectors. */
static bool wants_scalar(const char *op, const char *operand)
{
    static const char *const list[][2] = {{"Range", "start"}, {"Range", "limit"}, {"Range", "delta"}, {"Trilu", "k"}, {"CumSum", "axis"}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (strcmp(op, list[i][0]) == 0 && strcmp(operand, list[i][1]) == 0)
            return true;
    return false;
}

/* Only Range takes its sizes in the type of its result. */
static enum dtype operand_dtype(const struct node *node)
{
    return strcmp(node->optype, "Range") == 0 ? node->out[0]->type.dtype : DT_I64;
}

static struct value *attr_operand(const struct peers *p, const char *attr, const char *operand)
{
    const struct dim ***dims = NEWN(p->g->arena, const struct dim **, p->ranks);
    const struct node *own = p->node[p->rank];
    int n = attr_dims(own, attr, &dims[p->rank]);
    for (int r = 0; r < p->ranks; r++)
        require(attr_is_set(p->node[r], attr) && attr_dims(p->node[r], attr, &dims[r]) == n);
    return shape_tensor_as(p->g, as_tensor(p, n, dims), operand_dtype(own), wants_scalar(own->optype, operand));
}

/* ---- the node ------------------------------------------------------------------------------------------------------------------------ */

static struct node *open_copy(struct graph *g, const struct node *node)
{
    struct node *copy = NEW(g->arena, struct node);
    *copy = *node;
    copy->in = NEWN(g->arena, struct value *, node->op->nin);
    memcpy(copy->in, node->in, (size_t)node->nin * sizeof *node->in);
    copy->attr = NEWN(g->arena, struct attr, node->nattr);
    if (node->nattr > 0)
        memcpy(copy->attr, node->attr, (size_t)node->nattr * sizeof *node->attr);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            node->out[i]->producer = copy;
    return copy;
}

static void fill_operands(const struct peers *p, struct node *copy, int i)
{
    const struct op_param *operand = &copy->op->in[i];
    const char *attr = operand->size + 1;
    if (strcmp(attr, "type") == 0)
        copy->in[i] = type_operand(p, copy, i);
    else if (attr_is_set(copy, attr))
        copy->in[i] = attr_operand(p, attr, operand->name);
    else if (!operand->optional)
        bug("%s: operand %s is gone and attribute %s is not set", node_where(p->g, copy), operand->name, attr);
    if (copy->in[i] && copy->nin <= i)
        copy->nin = i + 1;
}

struct node *size_operands_restore(struct graph *g, int ranks, int rank, struct node *const *peers)
{
    const struct peers p = {g, ranks, rank, peers};
    struct node *node = peers[rank], *copy = NULL;
    for (int i = 0; node->op && i < node->op->nin; i++)
        if (node->op->in[i].size && !node_operand(node, i)) {
            copy = copy ? copy : open_copy(g, node);
            fill_operands(&p, copy, i);
        }
    for (int i = 0; copy && i < copy->nattr; i++)
        if (copy->attr[i].kind == ATTR_DIMS)
            copy->attr[i].set = false;
    return copy ? copy : node;
}
