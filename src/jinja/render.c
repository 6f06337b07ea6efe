/* Parsing and rendering: the two calls of jinja.h, their faults, and limits. */
#include "jinja/jinja.h"

#include <stdarg.h>
#include <string.h>
#include <utf8proc.h>

/* ---- faults ------------------------------------------------------------------------------------------------------------ */

static _Noreturn void spring(struct jinja_trap *t, size_t at, const char *format, va_list args)
{
    char sentence[512];
    vsnprintf(sentence, sizeof sentence, format, args);
    diag_make_printable(sentence);
    *t->fault = (struct jinja_fault){1, 1, arena_strdup(t->arena, sentence)};
    for (size_t i = 0; i < at && i < t->n; i++) {
        if (t->text[i] == '\n') {
            t->fault->line++;
            t->fault->column = 1;
        } else {
            t->fault->column += (t->text[i] & 0xc0) != 0x80;
        }
    }
    longjmp(t->back, 1);
}

_Noreturn void jinja_trapped(struct jinja_trap *t, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    spring(t, at, format, args);
}

_Noreturn void jinja_refuse(struct jinja_parser *p, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    spring(&p->trap, at, format, args);
}

_Noreturn void jinja_fail(struct jinja_run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    spring(&r->trap, r->at, format, args);
}

/* ---- limits ------------------------------------------------------------------------------------------------------------ */

void jinja_step(struct jinja_run *r, size_t bytes)
{
    r->steps += 1 + (int64_t)(bytes / 64);
    if (r->steps > JINJA_STEPS)
        jinja_fail(r, "the template takes more than %d steps", JINJA_STEPS);
}

void jinja_charge(struct jinja_run *r, size_t bytes)
{
    if (bytes > JINJA_MEMORY - r->memory)
        jinja_fail(r, "the template takes more than %d MiB of memory", JINJA_MEMORY >> 20);
    r->memory += bytes;
}

void *jinja_take(struct jinja_run *r, size_t count, size_t size)
{
    if (count > JINJA_MEMORY / size)
        jinja_fail(r, "the template takes more than %d MiB of memory", JINJA_MEMORY >> 20);
    jinja_charge(r, count * size + 16);
    return arena_array(r->arena, count, size);
}

void jinja_deeper(struct jinja_run *r)
{
    if (++r->depth > JINJA_DEPTH)
        jinja_fail(r, "evaluations or values are nested more than %d deep", JINJA_DEPTH);
}

/* ---- parsing ----------------------------------------------------------------------------------------------------------- */

static bool is_utf8(const char *at, size_t n)
{
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t more = utf8proc_iterate((const utf8proc_uint8_t *)at + i, (utf8proc_ssize_t)(n - i), &c);
        if (more <= 0)
            return false;
        i += (size_t)more;
    }
    return true;
}

static struct jinja *parse(struct jinja_parser *p)
{
    if (setjmp(p->trap.back))
        return NULL;
    if (p->trap.n > JINJA_SOURCE)
        jinja_trapped(&p->trap, 0, "the template is longer than %d MiB", JINJA_SOURCE >> 20);
    if (!is_utf8(p->trap.text, p->trap.n))
        jinja_trapped(&p->trap, 0, "the template is not UTF-8");
    p->trap.text = jinja_lines(p->arena, p->trap.text, &p->trap.n);
    p->tokens = jinja_lex(&p->trap);
    struct jinja *t = NEW(p->arena, struct jinja);
    *t = (struct jinja){.text = p->trap.text, .n = p->trap.n, .body = jinja_parse_template(p)};
    t->symbols = p->names.n;
    t->names = p->names.at;
    return t;
}

struct jinja *jinja_parse(struct arena *arena, const char *text, size_t n, struct jinja_fault *fault)
{
    struct jinja_parser p = {.arena = arena, .trap = {.arena = arena, .fault = fault, .text = text, .n = n}};
    return parse(&p);
}

/* ---- variables ----------------------------------------------------------------------------------------------------------- */

static struct jinja_value string_from(struct jinja_run *r, const char *at, size_t n, bool marked)
{
    if (!is_utf8(at, n))
        jinja_fail(r, "a variable has a string that is not UTF-8");
    struct jinja_builder b = {.run = r};
    jinja_put_bytes(&b, at, n, marked);
    return jinja_built(&b);
}

static struct jinja_value value_from(struct jinja_run *r, const json_t *json, bool marked)
{
    struct jinja_value out = JINJA_VALUE_NONE;
    const char *key;
    json_t *member;
    size_t i;
    jinja_deeper(r);
    switch (json_typeof(json)) {
    case JSON_NULL: break;
    case JSON_TRUE:
    case JSON_FALSE: out = jinja_bool(json_is_true(json)); break;
    case JSON_INTEGER: out = jinja_int(json_integer_value(json)); break;
    case JSON_REAL: out = jinja_float(json_real_value(json)); break;
    case JSON_STRING: out = string_from(r, json_string_value(json), json_string_length(json), marked); break;
    case JSON_ARRAY:
        out = jinja_list(r, JINJA_LIST);
        json_array_foreach(json, i, member) jinja_append(r, out, value_from(r, member, marked));
        break;
    case JSON_OBJECT:
        out = jinja_dict(r);
        json_object_foreach((json_t *)(uintptr_t)json, key, member)
        {
            struct jinja_value name = string_from(r, key, strlen(key), marked);
            jinja_append_pair(r, out, name, value_from(r, member, marked));
        }
        break;
    }
    r->depth--;
    return out;
}

static bool is_listed(const char *name, const char *const *list)
{
    for (; list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* The variables that the template names. */
static struct jinja_value *variables_of(struct jinja_run *r, const json_t *variables, const char *const *untrusted)
{
    struct jinja_value *at = jinja_take(r, (size_t)r->jinja->symbols + 1, sizeof *at);
    for (int i = 0; i < r->jinja->symbols; i++) {
        const char *name = r->jinja->names[i];
        struct jinja_string text = jinja_literal(name);
        const json_t *json = json_object_get(variables, name);
        const struct jinja_callable *function = jinja_function(&text);
        if (json)
            at[i] = value_from(r, json, is_listed(name, untrusted));
        else if (function)
            at[i] = (struct jinja_value){.type = JINJA_FUNCTION, .function = function};
    }
    return at;
}

/* ---- rendering ----------------------------------------------------------------------------------------------------------- */

/* The text in the caller's arena, its marks as ranges. */
static struct jinja_text text_of(struct arena *arena, const struct jinja_builder *b)
{
    VEC(struct jinja_range) ranges = {.at = NULL};
    for (size_t i = 0; b->marked && i < b->n; i++) {
        if (!b->mark[i])
            continue;
        if (ranges.n && ranges.at[ranges.n - 1].to == i)
            ranges.at[ranges.n - 1].to = i + 1;
        else
            VEC_PUSH(arena, &ranges, ((struct jinja_range){i, i + 1}));
    }
    const char *at = b->n ? memcpy(arena_alloc(arena, b->n), b->at, b->n) : "";
    return (struct jinja_text){.at = at, .n = b->n, .untrusted = ranges.at, .ranges = ranges.n};
}

static bool render(struct jinja_run *r, const json_t *variables, const char *const *untrusted)
{
    if (setjmp(r->trap.back))
        return false;
    r->variable = variables_of(r, variables, untrusted);
    r->scope = jinja_scope(r, NULL);
    jinja_execute(r, r->jinja->body);
    return true;
}

bool jinja_render(const struct jinja *t, struct arena *arena, const json_t *variables, const char *const *untrusted, struct jinja_text *out,
                  struct jinja_fault *fault)
{
    struct arena *own = arena_new_within(arena);
    struct jinja_run r = {.trap = {.arena = arena, .fault = fault, .text = t->text, .n = t->n}, .jinja = t, .arena = own};
    struct jinja_builder text = {.run = &r};
    r.out = &text;
    bool done = render(&r, variables, untrusted);
    if (done)
        *out = text_of(arena, &text);
    arena_free(own);
    return done;
}
