/* json: reading JSON files that people write, and writing it. `where` is the file and the path of a key in it ("plan.json:
 * constraints[2]"): every failure is one sentence that begins with it. Internal to src/plan. */
#ifndef TPC_JSON_H
#define TPC_JSON_H

#include "plan/plan.h"

#include <jansson.h>

/* A file that holds one object; the caller drops it with json_decref. */
json_t *json_read(const char *path);
/* Such an object as text; path: for messages. */
json_t *json_parse(const char *path, const char *text, size_t bytes);
/* An object without other keys than these; known ends in NULL. An unknown key is a failure that names the nearest one. */
void json_known_keys(const char *where, const json_t *, const char *const *known);
/* A member that must be a string, an array, ...: a failure where it is something else. NULL where it is absent. */
const char *json_text(struct arena *, const char *where, const json_t *, const char *key);
json_t *json_member(const char *where, const json_t *, const char *key, json_type);
/* As text, by flags of jansson; a line of its own unless it is compact. */
char *json_dump(struct arena *, const json_t *, size_t flags);
/* "an object", "a string", ... for messages. */
const char *json_kind(const json_t *);

/* machine.c */
struct machine machine_from(const char *where, const json_t *);
void machine_put(json_t *to, const struct machine *); /* its constants */
/* plan_parse.c: {"constraints": [...], "state": {...}} */
void user_plan_read(struct arena *, struct plan_file *, const char *where, const json_t *);
/* plan_read.c */
const struct emitted *emitted_plan_read(struct arena *, struct plan_file *, const json_t *);

#endif
