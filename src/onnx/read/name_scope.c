/* name_scope: the names of one graph or function call, and their values.
 *
 * A name may be read before it is defined, since nodes need not be sorted; a name that is undefined when the scope is closed is a failure.
 * Keys of values that tpc adds begin with a byte that no name of a file may hold, so they never clash. */
#include "onnx/read/read.h"

#include <string.h>

#define FRESH '\001'

struct scoped_name {
    const char *text;
    struct value *value;
    bool defined;       /* produced, an input, or a constant */
    const char *reader; /* who used it before it was defined; for messages */
    const char *why;    /* why it is never defined; NULL: no known reason */
    UT_hash_handle hh;
};

static struct scoped_name *find_name(const struct name_scope *scope, const char *text)
{
    struct scoped_name *found = NULL;
    HASH_FIND_STR(scope->names, text, found);
    return found;
}

static struct scoped_name *add_name(struct import *im, struct name_scope *scope, const char *text)
{
    struct arena *hash_arena = im->tmp;
    struct scoped_name *name = NEW(im->tmp, struct scoped_name);
    name->text = arena_strdup(im->tmp, text);
    HASH_ADD_KEYPTR(hh, scope->names, name->text, strlen(name->text), name);
    return name;
}

/* The value's own name: without the key of a fresh name, prefixed by the call. */
static struct value *new_value(struct import *im, const struct name_scope *scope, const char *text)
{
    static const struct type unknown;
    const char *colon = *text == FRESH ? strchr(text, ':') : NULL;
    if (colon)
        text = colon + 1;
    return graph_value(scope->graph, arena_printf(im->arena, "%s%s", scope->prefix, text), &unknown);
}

static struct scoped_name *get_name(struct import *im, struct name_scope *scope, const char *text)
{
    struct scoped_name *name = find_name(scope, text);
    if (!name)
        name = add_name(im, scope, text);
    if (!name->value)
        name->value = new_value(im, scope, text);
    return name;
}

void name_scope_announce(struct import *im, struct name_scope *scope, const char *text)
{
    if (!find_name(scope, text))
        add_name(im, scope, text);
}

void name_scope_add_capture(struct import *im, struct name_scope *scope, struct value *around, struct value *inside)
{
    VEC_PUSH(im->arena, &scope->graph->inputs, inside);
    VEC_PUSH(im->arena, &scope->captured, around);
    scope->graph->captures++;
}

/* An input of the subgraph that stands for the outer value. */
static struct value *capture_value(struct import *im, struct name_scope *scope, const char *name, struct value *around)
{
    struct value *inside = graph_value(scope->graph, name, &around->type);
    for (int d = 0; d < inside->type.rank; d++)
        inside->type.dim[d] = dim_copy(scope->graph->alg, around->type.dim[d]);
    name_scope_add_capture(im, scope, around, inside);
    return inside;
}

struct value *name_scope_read(struct import *im, struct name_scope *scope, const char *text, const char *reader)
{
    struct scoped_name *name = find_name(scope, text);
    if (!name && scope->outer) {
        name = add_name(im, scope, text);
        name->value = capture_value(im, scope, text, name_scope_read(im, scope->outer, text, reader));
        name->defined = true;
    }
    name = get_name(im, scope, text);
    if (!name->reader)
        name->reader = reader;
    return name->value;
}

struct value *name_scope_define(struct import *im, struct name_scope *scope, const char *text, const char *definer)
{
    struct scoped_name *name = get_name(im, scope, text);
    if (name->defined)
        fail("%s: %s defines '%s', which is defined already", im->path, definer, text);
    name->defined = true;
    return name->value;
}

void name_scope_bind(struct import *im, struct name_scope *scope, const char *text, struct value *value)
{
    struct scoped_name *name = find_name(scope, text);
    if (name && (name->defined || name->value))
        fail("%s: function '%s' has two parameters or results named '%s'", im->path, proto_text_or(scope->function->name, ""), text);
    name = add_name(im, scope, text);
    name->value = value;
    name->defined = true;
}

void name_scope_promise(struct import *im, struct name_scope *scope, const char *text, struct value *value, const char *reader)
{
    struct scoped_name *name = add_name(im, scope, text);
    name->value = value;
    name->reader = reader;
}

bool name_scope_knows(const struct name_scope *scope, const char *text)
{
    return find_name(scope, text) != NULL;
}

bool name_scope_lacks(const struct name_scope *scope, const char *text)
{
    while (scope->outer && !find_name(scope, text))
        scope = scope->outer;
    const Onnx__FunctionProto *f = find_name(scope, text) ? NULL : scope->function;
    return f && NAMED_AT(f->input, f->n_input, text) >= 0;
}

struct value *name_scope_find(const struct name_scope *scope, const char *text)
{
    while (scope->outer && !find_name(scope, text))
        scope = scope->outer;
    struct scoped_name *name = find_name(scope, text);
    return name && name->defined ? name->value : NULL;
}

char *name_scope_fresh(struct import *im, const char *display)
{
    if (*display == FRESH)
        display = strchr(display, ':') + 1;
    return arena_printf(im->tmp, "%c%d:%s", FRESH, im->fresh++, display);
}

static struct value *define_constant(struct import *im, struct name_scope *scope, const char *key, enum dtype dtype, int rank, int64_t n,
                                     const void *data, size_t bytes)
{
    struct value *value = name_scope_define(im, scope, key, "an upgraded node");
    struct constant *c = NEW(im->arena, struct constant);
    void *copy = arena_alloc(im->arena, bytes ? bytes : 1);
    if (bytes)
        memcpy(copy, data, bytes);
    *c = (struct constant){.dtype = dtype, .rank = rank, .dim = {n}, .bytes = (int64_t)bytes, .data = copy};
    value->constant = c;
    value->type = (struct type){.dtype = dtype, .rank = rank};
    if (rank)
        value->type.dim[0] = dim_int(im->alg, n);
    return value;
}

char *name_scope_ints(struct import *im, struct name_scope *scope, const char *display, size_t n, const int64_t *at)
{
    char *key = name_scope_fresh(im, display);
    define_constant(im, scope, key, DT_I64, 1, (int64_t)n, at, n * sizeof *at);
    return key;
}

char *name_scope_floats(struct import *im, struct name_scope *scope, const char *display, size_t n, const float *at)
{
    char *key = name_scope_fresh(im, display);
    define_constant(im, scope, key, DT_F32, 1, (int64_t)n, at, n * sizeof *at);
    return key;
}

char *name_scope_whole(struct import *im, struct name_scope *scope, const char *display, enum dtype dtype, int64_t whole)
{
    char *key = name_scope_fresh(im, display);
    uint8_t truth = whole != 0;
    bool is_bool = dtype == DT_BOOL;
    define_constant(im, scope, key, dtype, 0, 0, is_bool ? (const void *)&truth : &whole, is_bool ? sizeof truth : sizeof whole);
    return key;
}

char *name_scope_scalar(struct import *im, struct name_scope *scope, const char *display, double number)
{
    char *key = name_scope_fresh(im, display);
    float f = (float)number;
    define_constant(im, scope, key, DT_F32, 0, 0, &f, sizeof f);
    return key;
}

void name_scope_withhold(struct import *im, struct name_scope *scope, const char *text, const char *why)
{
    name_scope_announce(im, scope, text);
    find_name(scope, text)->why = why;
}

void name_scope_close(struct import *im, struct name_scope *scope)
{
    for (const struct scoped_name *name = scope->names; name; name = name->hh.next)
        if (!name->defined && (name->reader || !name->why))
            fail("%s: %s reads '%s%s', which %s", im->path, proto_text_or(name->reader, "the graph"), scope->prefix, name->text,
                 proto_text_or(name->why, "nothing produces"));
}

static const Onnx__OperatorSetIdProto *opset_import_of(size_t n, Onnx__OperatorSetIdProto **at, const char *domain)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(proto_domain(at[i]->domain), domain) == 0)
            return at[i];
    return NULL;
}

bool name_scope_imports(const struct import *im, const char *domain)
{
    return opset_import_of(im->model->n_opset_import, im->model->opset_import, domain) != NULL;
}

/* A function that does not import a domain uses the model's version of it. */
int name_scope_opset(const struct import *im, const struct name_scope *scope, const char *domain, const char *where)
{
    const Onnx__OperatorSetIdProto *found = opset_import_of(scope->nopset, scope->opset, domain);
    if (!found)
        found = opset_import_of(im->model->n_opset_import, im->model->opset_import, domain);
    if (!found)
        fail("%s: %s needs domain '%s', which opset_import does not name", im->path, where, *domain ? domain : "ai.onnx");
    if (found->version < 1 || found->version > 100000)
        fail("%s: opset_import gives version %lld for domain '%s'", im->path, (long long)found->version, domain);
    return (int)found->version;
}
