/* model: the model that a request names: the served one, or one of its adapters. */
#include "serve/reply/reply.h"
#include "serve/request/request.h"

#include <string.h>

const char *request_model_names(const struct call *c)
{
    const struct service *s = c->service;
    const char *all = arena_printf(c->arena, "'%s'", s->model);
    for (int i = 0; i < s->adapters; i++)
        all = arena_printf(c->arena, "%s, '%s'", all, s->adapter[i].name);
    return all;
}

/* Like reply_named_model. */
static int number_of(const struct service *s, const char *name)
{
    for (int i = 0; i < s->adapters; i++)
        if (strcmp(s->adapter[i].name, name) == 0)
            return i + 1;
    return strcmp(s->model, name) == 0 ? 0 : -1;
}

int64_t request_model(struct reading *r)
{
    const struct service *s = r->call->service;
    const json_t *v = request_given(r, "model");
    if (v && !json_is_string(v))
        request_refuse(r, "model", "a name");
    if (!v || !json_is_string(v) || !s->adapters)
        return 0;
    int number = number_of(s, json_string_value(v));
    if (number >= 0)
        return number;
    if (!r->wrong) {
        r->call->code = "model_not_found";
        r->call->status = MHD_HTTP_NOT_FOUND;
    }
    request_refuse(r, "model", arena_printf(r->call->arena, "one of %s", request_model_names(r->call)));
    return 0;
}
