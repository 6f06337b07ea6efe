/* einsum: the equation of an Einsum. canon writes the node as products of two operands (canon/einsum_to_matmul.c). */
#include "op/infer/infer.h"
#include "op/product/product.h"
#include "op/table/table.h"

#include <string.h>

/* ---- the equation ----------------------------------------------------------------------------------------------------------------- */

static void add_label(const struct graph *g, const struct node *node, struct labels *l, int label)
{
    if (l->n == MAX_RANK)
        fail("%s: a term of the equation '%s' has more than %d dimensions", node_where(g, node), attr_string(node, "equation"), MAX_RANK);
    l->at[l->n++] = label;
}

/* The label of a letter; -1: it is none. */
static int label_of(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

/* One operand's labels, from n characters; dots: the number of dimensions that "..." stands for. */
static struct labels read_term(const struct graph *g, const struct node *node, const char *text, size_t n, int dots)
{
    struct labels l = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        if (label_of(text[i]) >= 0) {
            add_label(g, node, &l, label_of(text[i]));
        } else if (n - i >= 3 && strncmp(text + i, "...", 3) == 0) {
            for (int k = dots - 1; k >= 0; k--)
                add_label(g, node, &l, ELLIPSIS + k);
            i += 2;
        } else if (text[i] != ' ') {
            fail("%s: the equation '%s' is not well formed", node_where(g, node), attr_string(node, "equation"));
        }
    }
    return l;
}

static int count_letters(const char *text, size_t n, bool *dots)
{
    int letters = 0;
    for (size_t i = 0; i < n; i++) {
        letters += label_of(text[i]) >= 0;
        *dots = *dots || text[i] == '.';
    }
    return letters;
}

uint64_t einsum_set(const struct labels *l)
{
    uint64_t set = 0;
    for (int i = 0; i < l->n; i++)
        set |= (uint64_t)1 << l->at[i];
    return set;
}

/* Without "->": the dimensions of "...", then every letter that occurs once, in alphabetical order. */
static void implied_result(const struct graph *g, const struct node *node, struct einsum *e, int dots)
{
    for (int k = dots - 1; k >= 0; k--)
        add_label(g, node, &e->out, ELLIPSIS + k);
    for (int k = 0; k < ELLIPSIS; k++) {
        int label = (k + 26) % ELLIPSIS; /* capitals first, as in ASCII */
        int times = 0;
        for (int i = 0; i < e->nin; i++)
            for (int d = 0; d < e->in[i].n; d++)
                times += e->in[i].at[d] == label;
        if (times == 1)
            add_label(g, node, &e->out, label);
    }
}

static int first_of(const struct labels *l, int label)
{
    int d = 0;
    while (l->at[d] != label)
        d++;
    return d;
}

/* Gives every label its size. */
static void measure_labels(struct graph *g, const struct node *node, struct einsum *e)
{
    for (int i = 0; i < e->nin; i++) {
        const struct type *t = op_operand(g, node, i);
        if (e->in[i].n != t->rank)
            fail("%s: operand '%s' is %s but its term in the equation '%s' has %d dimensions", node_where(g, node), node->in[i]->name,
                 type_str(g->arena, t), attr_string(node, "equation"), e->in[i].n);
        for (int d = 0; d < t->rank; d++) {
            const struct dim **size = &e->size[e->in[i].at[d]];
            int before = first_of(&e->in[i], e->in[i].at[d]);
            if (before < d)
                op_same_dim(g, node, t->dim[before], t->dim[d], "dimensions of a diagonal");
            *size = *size ? op_broadcast_dim(g, node, *size, t->dim[d], "dimensions of one letter") : t->dim[d];
        }
    }
    for (int d = 0; d < e->out.n; d++)
        if (!e->size[e->out.at[d]] || first_of(&e->out, e->out.at[d]) < d)
            fail("%s: the result of the equation '%s' has a letter that no operand has, or one twice", node_where(g, node),
                 attr_string(node, "equation"));
}

struct einsum einsum_read(struct graph *g, const struct node *node)
{
    const char *text = attr_string(node, "equation"), *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text);
    struct einsum e = {.nin = node->nin, .in = NEWN(g->arena, struct labels, node->nin)};
    int dots = 0;
    for (int i = 0; i < node->nin; i++) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t n = (size_t)((comma ? comma : end) - text);
        bool dotted = false;
        int letters = count_letters(text, n, &dotted), own = dotted ? op_operand(g, node, i)->rank - letters : 0;
        dots = own > dots ? own : dots;
        e.in[i] = read_term(g, node, text, n, own);
        text = comma ? comma + 1 : end;
        if (!comma != (i == node->nin - 1))
            fail("%s: the equation '%s' does not have a term for each of %d operands", node_where(g, node), attr_string(node, "equation"),
                 node->nin);
    }
    if (arrow)
        e.out = read_term(g, node, arrow + 2, strlen(arrow + 2), dots);
    else
        implied_result(g, node, &e, dots);
    measure_labels(g, node, &e);
    return e;
}

void infer_einsum(struct graph *g, struct node *node)
{
    struct einsum e = einsum_read(g, node);
    const struct dim *dim[MAX_RANK];
    for (int i = 1; i < e.nin; i++)
        op_same_dtype(g, node, 0, i);
    for (int d = 0; d < e.out.n; d++)
        dim[d] = e.size[e.out.at[d]];
    op_result(g, node, 0, op_operand(g, node, 0)->dtype, e.out.n, dim);
}
