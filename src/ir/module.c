/* module: which module of the source (a torch.nn.Module) a node was exported from. A table by the names of the model's nodes, so that no
 * pass has to carry it along. */
#include "ir/ir.h"

#include <string.h>
#define uthash_malloc(bytes) arena_alloc(arena, bytes)
#define uthash_free(p, bytes) ((void)0)
#include <uthash.h>

enum { NESTED = 64 }; /* parts of parts that are looked through: names of hostile files are one long row of slashes */

struct module_member {
    const char *node, *path;
    UT_hash_handle hh;
};
struct modules {
    struct module_member *table;
};

static const struct module_member *find_module(const struct graph *g, const char *node, size_t length)
{
    struct module_member *m = NULL;
    HASH_FIND(hh, g->modules->table, node, length, m);
    return m;
}

void graph_set_module(struct graph *g, const char *node, const char *path)
{
    struct arena *arena = g->arena;
    require(*path && strlen(path) <= MODULE_PATH);
    if (!g->modules)
        g->modules = NEW(arena, struct modules);
    if (find_module(g, node, strlen(node)))
        return;
    struct module_member *m = NEW(arena, struct module_member);
    m->node = arena_strdup(arena, node);
    m->path = arena_strdup(arena, path);
    HASH_ADD_KEYPTR(hh, g->modules->table, m->node, strlen(m->node), m);
}

/* The length of a name without its last part; 0: it has only one. */
static size_t stem(const char *name, size_t length)
{
    while (length > 0 && name[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

const char *node_module(const struct graph *g, const struct node *n)
{
    size_t length = g->modules ? strlen(n->name) : 0;
    for (int i = 0; i < NESTED && length > 0; i++) {
        const struct module_member *m = find_module(g, n->name, length);
        if (m)
            return m->path;
        length = stem(n->name, length);
    }
    return NULL;
}
