/* machine: the constants of the cost model. The reference profile, schemas/machines/reference.json, is compiled in, so that the same
 * model gives the same plan everywhere; a file written by tpc-run --calibrate describes a real machine. */
#include "plan/json.h"

#include <math.h>
#include <string.h>

#include "plan/reference.h"

struct key { const char *name; size_t offset; bool may_be_zero; };

static const struct key keys[] = {
    {"flops", offsetof(struct machine, flops), false},
    {"memory_bandwidth", offsetof(struct machine, memory_bandwidth), false},
    {"link_bandwidth", offsetof(struct machine, link_bandwidth), false},
    {"hop_latency", offsetof(struct machine, hop_latency), true},
    {"collective_overhead", offsetof(struct machine, collective_overhead), true},
    {"elementwise_share", offsetof(struct machine, elementwise_share), true},
    {"weight_price", offsetof(struct machine, weight_price), true},
};
enum { KEYS = sizeof keys / sizeof *keys };

static double number(const char *path, const json_t *root, const struct key *key)
{
    const json_t *v = json_object_get(root, key->name);
    if (!json_is_number(v))
        fail("%s: expected a number for '%s', found %s", path, key->name, v ? "something else" : "nothing");
    double x = json_number_value(v);
    if (!isfinite(x) || x < 0 || (x <= 0 && !key->may_be_zero))
        fail("%s: expected '%s' above zero, found %g", path, key->name, x);
    return x;
}

struct machine machine_from(const char *where, const json_t *root)
{
    struct machine m = {.name = where};
    const char *known[KEYS + 3] = {"name", "version"};
    for (int i = 0; i < KEYS; i++)
        known[i + 2] = keys[i].name;
    json_known_keys(where, root, known);
    for (int i = 0; i < KEYS; i++)
        *(double *)(void *)((char *)&m + keys[i].offset) = number(where, root, &keys[i]);
    return m;
}

static struct machine decode(const char *name, json_t *root)
{
    struct machine m = machine_from(name, root);
    json_decref(root);
    return m;
}

struct machine machine_reference(void)
{
    return decode("reference", json_parse("reference", machine_reference_text, sizeof machine_reference_text - 1));
}

/* A file, else the name of an installed profile. */
static const char *find(struct arena *a, const char *name)
{
    const char *installed = path_exists(name) || strchr(name, '/') ? NULL : data_file(a, arena_printf(a, "machines/%s.json", name));
    return installed ? installed : name;
}

struct machine machine_read(struct arena *a, const char *name)
{
    return decode(name, json_read(find(a, name)));
}
