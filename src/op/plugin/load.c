/* load: the libraries of --plugin. */
#include "ir/rank_meta.h"
#include "op/op.h"
#include "op/plugin/plugin.h"

#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Loaded libraries stay until the process ends: nodes point to them. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct plugin *_Atomic first, *_Atomic *last = &first;

const struct plugin *plugin_first(void)
{
    return first;
}

/* ---- declarations of a library --------------------------------------------------------------------------------------------------- */

static bool is_name(const char *text, const char *more)
{
    size_t n = 0;
    for (; text && text[n]; n++)
        if (!isalnum((unsigned char)text[n]) && !strchr(more, text[n]))
            return false;
    return n > 0 && n <= 100;
}

/* "name:i=1", "name:f=0.5", "name:s=plain" */
static bool attribute_is_valid(struct arena *a, const char *word, size_t n)
{
    const char *text = arena_strndup(a, word, n), *kind = strchr(text, ':');
    if (!kind || !kind[1] || kind[2] != '=' || !is_name(arena_strndup(a, text, (size_t)(kind - text)), "_"))
        return false;
    char *end = NULL;
    if (kind[1] == 'i')
        (void)strtoll(kind + 3, &end, 10);
    else if (kind[1] == 'f')
        (void)strtof(kind + 3, &end);
    return kind[1] == 's' || (end && end > kind + 3 && !*end);
}

static void check_attributes(struct arena *a, const char *text, const char *where)
{
    int n = 0;
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (++n > PLUGIN_ATTRIBUTES || !attribute_is_valid(a, at, length))
            fail("%s: attributes '%s': expected at most %d of the form name:i=1, name:f=0.5 or name:s=text, found '%.*s'", where, text,
                 PLUGIN_ATTRIBUTES, (int)length, at);
        at += length;
    }
}

static void check_op(const struct plugin *p, int i, const tpc_plugin_op *op)
{
    if (!is_name(op->domain, "._-") || !is_name(op->name, "_"))
        fail("%s: op %d has no name of letters, digits and _ in a domain of its own", p->path, i);
    if (strncmp(op->domain, "ai.onnx", 7) == 0 || strcmp(op->domain, "tpc") == 0 || strcmp(op->domain, "com.microsoft") == 0)
        fail("%s: op '%s' is of domain '%s', which is not a plug-in's", p->path, op->name, op->domain);
    const struct op *known = op_find(op->domain, op->name);
    for (int k = 0; k < i && !known; k++)
        if (strcmp(p->at[k].given.domain, op->domain) == 0 && strcmp(p->at[k].given.name, op->name) == 0)
            known = &p->at[k].op;
    if (known)
        fail("%s: the op '%s' of domain '%s' exists already%s%s", p->path, op->name, op->domain, known->plugin ? ", in the plug-in " : "",
             known->plugin ? known->plugin : "");
    if (!op->signature || !op->kernel)
        fail("%s: op '%s' has no %s", p->path, op->name, op->signature ? "kernel" : "signature");
}

/* Whether the rule sums over a factor of two operands: its weights are then split like those of products. */
static bool is_product(const char *rule)
{
    return rule && strstr(rule, "sum") && strstr(rule, "contracted");
}

static void read_op(struct arena *a, struct plugin *p, int i, const tpc_plugin_op *given)
{
    struct plugin_op *op = &p->at[i];
    check_op(p, i, given);
    const char *where = arena_printf(a, "%s: op '%s'", p->path, given->name), *attributes = given->attributes ? given->attributes : "";
    op->given = *given;
    op->signature = plugin_signature_parse(a, alg_new(a), given->signature, where);
    check_attributes(a, attributes, where);
    const struct op_row row = {.inputs = op->signature.inputs,
                               .outputs = op->signature.outputs,
                               .attributes = attributes,
                               .op = {.name = given->name,
                                      .domain = given->domain,
                                      .plugin = p->name,
                                      .since = 1,
                                      .flags = is_product(given->rule) ? OP_PRODUCT | OP_SEEDS : 0,
                                      .infer = plugin_infer,
                                      .infer_name = "plugin",
                                      .rule = given->rule ? plugin_rule : NULL,
                                      .rule_name = given->rule ? "plugin" : NULL,
                                      .rule_text = given->rule,
                                      .no_backward = "operators of plug-ins have no gradient",
                                      .kernel = plugin_kernel,
                                      .kernel_name = "plugin"}};
    op_fill(&op->op, &row);
    plugin_check(op, NULL, where);
}

static const tpc_plugin *call_entry(const char *path, void *library)
{
    const tpc_plugin *(*entry)(void) = NULL;
    void *symbol = dlsym(library, "tpc_plugin_entry");
    if (!symbol)
        fail("%s: has no symbol tpc_plugin_entry: not a plug-in of tpc", path);
    memcpy(&entry, &symbol, sizeof entry);
    const tpc_plugin *given = entry();
    if (!given)
        fail("%s: tpc_plugin_entry returns nothing", path);
    if (given->abi != TPC_PLUGIN_ABI)
        fail("%s: was compiled for version %" PRIu32 " of tpc_plugin.h, and this program has version %d", path, given->abi, TPC_PLUGIN_ABI);
    if (!is_name(given->name, "-_") || !given->op || given->ops < 1 || given->ops > PLUGIN_OPS)
        fail("%s: expected a name of letters, digits, - and _, and 1 to %d operators", path, PLUGIN_OPS);
    return given;
}

/* ---- loading ------------------------------------------------------------------------------------------------------------------------- */

static void *open_library(struct arena *a, const char *path)
{
    const char *real = path_real(a, path);
    if (!real)
        fail("%s: no such file: --plugin names a shared library", path);
    void *library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail("%s: can't be loaded: %s", path, dlerror());
    return library;
}

static void load_library(struct arena *a, const char *path, const char *digest)
{
    const tpc_plugin *given = call_entry(path, open_library(a, path));
    struct plugin *p = NEW(a, struct plugin);
    *p = (struct plugin){
        .name = given->name, .path = arena_strdup(a, path), .n = (int)given->ops, .at = NEWN(a, struct plugin_op, given->ops)};
    (void)snprintf(p->digest, sizeof p->digest, "%s", digest);
    for (const struct plugin *other = first; other; other = other->next)
        if (strcmp(other->name, p->name) == 0)
            fail("%s: another plug-in is called '%s', too: %s", path, p->name, other->path);
    for (int i = 0; i < p->n; i++)
        read_op(a, p, i, &given->op[i]);
    for (int i = 0; i < p->n; i++)
        op_add(&p->at[i].op);
    *last = p;
    last = &p->next;
    explain("%s: the plug-in '%s' with %d operator%s, checked; digest %s", path, p->name, p->n, p->n == 1 ? "" : "s", p->digest);
}

void plugin_load(const char *path)
{
    static struct arena *room; /* for the next plug-in: a rejected one's data is overwritten */
    diag_lock(&loading);
    struct scope *user = scope_swap(NULL);
    room = room ? room : arena_new();
    (void)scope_swap(user);
    arena_reset(room);
    struct map map = map_file(path);
    char digest[17];
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, digest_bytes(map.at, map.bytes));
    map_close(map);
    bool known = false;
    for (const struct plugin *p = first; p; p = p->next)
        known = known || strcmp(p->digest, digest) == 0;
    if (!known) {
        load_library(room, path, digest);
        room = NULL;
    }
    diag_unlock(&loading);
}

/* ---- rank files ---------------------------------------------------------------------------------------------------------------------- */

bool plugin_is_used(const struct plugin *p, const struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (n->op && n->op->plugin == p->name)
            return true;
        for (int k = 0; n->op && k < node_bodies(n); k++)
            if (plugin_is_used(p, node_body(n, k)->graph))
                return true;
    }
    return false;
}

const char *plugin_list(struct arena *a, const struct graph *g)
{
    const char *text = NULL;
    for (const struct plugin *p = first; p; p = p->next)
        if (plugin_is_used(p, g))
            text = arena_printf(a, "%s%s%s:%s", text ? text : "", text ? " " : "", p->name, p->digest);
    return text;
}

void plugin_require_name(const char *path, const char *name)
{
    for (const struct plugin *p = first; p; p = p->next)
        if (strcmp(p->name, name) == 0)
            return;
    fail("%s: was compiled with the plug-in '%s': give its library as --plugin FILE.so", path, name);
}

/* A plan made without the operators of a plug-in does not cover their results. */
static void check_named(const struct graph *g, const char *text)
{
    for (const struct plugin *p = first; p; p = p->next) {
        const size_t n = strlen(p->name);
        const char *at = text;
        while (at && (strncmp(at, p->name, n) != 0 || at[n] != ':'))
            at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
        if (!at && plugin_is_used(p, g))
            fail("%s: was compiled without the plug-in '%s', which has operators of it: compile it again with --plugin %s", graph_file(g),
                 p->name, p->path);
    }
}

static void require_one(const struct graph *g, const char *word, size_t n)
{
    size_t length = 0;
    while (length < n && word[length] != ':')
        length++;
    const struct plugin *p = first;
    plugin_require_name(graph_file(g), arena_strndup(g->arena, word, length));
    while (strlen(p->name) != length || strncmp(p->name, word, length) != 0)
        p = p->next;
    if (length == n)
        fail("%s: its metadata names a plug-in without a digest: '%.*s'", graph_file(g), (int)n, word);
    if (strlen(p->digest) != n - length - 1 || strncmp(p->digest, word + length + 1, n - length - 1) != 0)
        fail("%s: was compiled with another build of the plug-in '%s' (%.*s) than %s (%s): compile it again, or give that library",
             graph_file(g), p->name, (int)(n - length - 1), word + length + 1, p->path, p->digest);
}

void plugin_require(const struct graph *g)
{
    const char *text = graph_meta(g, RANK_META_PLUGINS);
    for (text = text ? text + strspn(text, " ") : ""; *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " ");
        require_one(g, text, n);
        text += n;
    }
    if (g->rank_meta)
        check_named(g, graph_meta(g, RANK_META_PLUGINS));
}
