/* labels: readable names of nodes and weights: the module or path that they come from, without the op or number that an exporter added. */
#include "op/op.h"
#include "plan/facts/facts.h"

#include <ctype.h>
#include <string.h>

/* "MatMul", "MatMul_3", "Repeat". */
static bool is_op_name(struct arena *a, const char *part)
{
    const char *op = arena_strndup(a, part, strcspn(part, "_0123456789"));
    return op_find("", op) || op_find("tpc", op) || op_find("com.microsoft", op);
}

const char *label_node(struct arena *a, const struct graph *g, const struct node *n)
{
    const char *module = node_module(g, n);
    char *name = arena_strdup(a, module ? module : n->name + (n->name[0] == '/'));
    for (char *cut; (cut = strrchr(name, '/')) && is_op_name(a, cut + 1);)
        *cut = '\0';
    return *name ? name : n->optype;
}

const char *label_last(const char *label)
{
    const char *slash = strrchr(label, '/'), *part = slash ? slash + 1 : label, *at = part + strlen(part);
    while (at > part && !(at[-1] == '.' && at[strspn(at, "0123456789")])) /* a number alone says nothing: "layers.0" */
        at--;
    return at;
}

/* Whether a name has one part that ends in its own number: "onnx::MatMul_733", "val_12", "12". */
static bool is_numbered(const char *name)
{
    size_t n = strlen(name), digits = 0;
    while (digits < n && isdigit((unsigned char)name[n - 1 - digits]))
        digits++;
    return digits > 0 && !strpbrk(name, "./") && (digits == n || name[n - 1 - digits] == '_');
}

/* The value that a use makes if its node only moves, decodes or casts; NULL: the node computes with it. */
static const struct value *moved_by(struct use use)
{
    bool alone = use.index == 0 && use.node->nout > 0;
    for (int k = 1; k < use.node->nin; k++)
        alone = alone && (!use.node->in[k] || use.node->in[k]->constant);
    return alone ? use.node->out[0] : NULL;
}

enum { MOVES = 8 }; /* nodes to look through */

/* The node that computes with the value, after nodes that only move it. */
static struct use reader_of(const struct uses *uses, const struct value *v)
{
    struct use use = {NULL, 0};
    for (int i = 0; i < MOVES && v && uses[v->id].n > 0 && uses[v->id].at[0].node; i++) {
        use = uses[v->id].at[0];
        v = moved_by(use);
    }
    return use;
}

struct reader_search {
    struct arena *arena;
    const struct graph *g;
    const struct uses *uses;
    struct name_index known;
    struct label_list found;
};

static void add_readers(struct reader_search *s, const struct value *v, int moves)
{
    for (int i = 0; i < s->uses[v->id].n; i++) {
        struct use use = s->uses[v->id].at[i];
        const struct value *moved = use.node && moves < MOVES ? moved_by(use) : NULL;
        if (!use.node)
            continue;
        if (moved && s->uses[moved->id].n > 0) {
            add_readers(s, moved, moves + 1);
            continue;
        }
        const char *label = label_node(s->arena, s->g, use.node);
        s->found.nodes++;
        if (name_index_find(&s->known, label) >= 0)
            continue;
        name_index_put(s->arena, &s->known, label, s->found.list.n);
        VEC_PUSH(s->arena, &s->found.list, label);
    }
}

struct label_list label_readers(struct arena *a, const struct graph *g, const struct uses *uses, const struct value *v)
{
    struct reader_search s = {.arena = a, .g = g, .uses = uses};
    add_readers(&s, v, 0);
    return s.found;
}

const char *label_weight(struct arena *a, const struct graph *g, const struct uses *uses, const struct value *v)
{
    const char *own = v->constant && v->constant->origin ? v->constant->origin : v->name;
    struct use use = reader_of(uses, v);
    if (!is_numbered(own) || !use.node)
        return own;
    const char *label = label_node(a, g, use.node);
    int others = 0;
    for (int i = 0; i < use.node->nin; i++)
        others += i != use.index && use.node->in[i] && use.node->in[i]->constant && is_numbered(use.node->in[i]->name);
    const struct op *op = use.node->op;
    return !others                  ? label
        : op && use.index < op->nin ? arena_printf(a, "%s (%s)", label, op->in[use.index].name)
                                    : arena_printf(a, "%s (operand %d)", label, use.index);
}

const char *label_both(struct arena *a, const struct graph *g, const struct uses *uses, const struct value *v)
{
    const char *label = label_weight(a, g, uses, v);
    return strcmp(label, v->name) == 0 ? label : arena_printf(a, "%s of %s", v->name, label);
}

const char *label_pattern(struct arena *a, const char *label)
{
    char *out = arena_strdup(a, label), *to = out;
    for (const char *from = label; *from;) {
        size_t n = strspn(from, "0123456789");
        bool begins = from == label || strchr("./_", from[-1]), ends = !from[n] || strchr("./_", from[n]);
        if (n > 0 && begins && ends) {
            *to++ = '*';
            from += n;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return out;
}
