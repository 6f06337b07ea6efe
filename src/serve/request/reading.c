/* reading: reads the body of a request: its fields, and which of them have no effect. */
#include "serve/request/request.h"

#include <string.h>

void request_blame(struct reading *r, const char *key, const char *sentence)
{
    if (r->wrong)
        return;
    r->wrong = sentence;
    r->call->param = key;
}

void request_refuse(struct reading *r, const char *key, const char *expected)
{
    request_blame(r, key, arena_printf(r->call->arena, "%s: expected %s", key, expected));
}

const json_t *request_given(struct reading *r, const char *key)
{
    VEC_PUSH(r->call->arena, &r->read.text, key);
    const json_t *v = json_object_get(r->root, key);
    return json_is_null(v) ? NULL : v;
}

double request_real(struct reading *r, const char *key, double otherwise)
{
    const json_t *v = request_given(r, key);
    if (v && !json_is_number(v))
        request_refuse(r, key, "a number");
    return v ? json_number_value(v) : otherwise;
}

int64_t request_integer(struct reading *r, const char *key, int64_t least, int64_t most, int64_t otherwise)
{
    const json_t *v = request_given(r, key);
    int64_t x = v && json_is_integer(v) ? json_integer_value(v) : otherwise;
    if ((v && !json_is_integer(v)) || (v && (x < least || x > most)))
        request_refuse(r, key, arena_printf(r->call->arena, "a whole number of %lld to %lld", (long long)least, (long long)most));
    return x;
}

bool request_flag(struct reading *r, const char *key, bool otherwise)
{
    const json_t *v = request_given(r, key);
    if (v && !json_is_boolean(v))
        request_refuse(r, key, "true or false");
    return v ? json_is_true(v) : otherwise;
}

/* ---- fields without effect ---- */

static bool is_told(struct told *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->name[i], name) == 0)
            return true;
    return false;
}

/* The log names each once, unless there are too many. */
static void tell_ignored(struct told *t, const char *name)
{
    const int most = (int)(sizeof t->name / sizeof *t->name);
    if (t->n == most || strlen(name) >= sizeof *t->name || is_told(t, name))
        return;
    memcpy(t->name[t->n++], name, strlen(name) + 1);
    diag_tell("requests have '%s', a field that this address does not know and that has no effect%s", name,
              t->n == most ? "; further ones are not named" : "");
}

static void note_ignored(struct reading *r, json_t *root)
{
    struct call *c = r->call;
    struct text_list names = fields_ignored(c->arena, root, &r->read);
    for (int i = 0; i < names.text.n; i++) {
        tell_ignored(&c->service->told, names.text.at[i]);
        c->ignored = i ? arena_printf(c->arena, "%s, %s", c->ignored, names.text.at[i]) : names.text.at[i];
    }
}

/* ---- the body ---- */

const char *request_body(struct call *c, void (*read)(struct reading *))
{
    json_error_t error;
    const struct text body = text_built(&c->body);
    json_t *root = json_loadb(body.n ? body.at : "", body.n, JSON_ALLOW_NUL, &error);
    struct reading r = {.call = c, .root = root};
    if (!root && json_error_code(&error) == json_error_numeric_overflow)
        return arena_printf(c->arena, "line %d of the body has a number that is too large: whole numbers have 64 bits with their sign",
                            error.line);
    if (!root)
        return arena_printf(c->arena, "the body is not JSON: line %d: %s", error.line, error.text);
    if (json_is_object(root)) {
        read(&r);
        note_ignored(&r, root);
    } else
        r.wrong = "the body is not an object";
    json_decref(root);
    return r.wrong;
}
