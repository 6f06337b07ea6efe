/* machine: the constants of the cost model. The shipped reference profile is part of the repository, so that the same model gives the
 * same plan everywhere; a file written by tpc-run --calibrate describes a real machine. */
#include "plan/json.h"
#include "plan/plan.h"

#include <math.h>

struct machine machine_reference(void)
{
    return (struct machine){.name = "reference", .flops = 100e9, .memory_bandwidth = 12e9, .link_bandwidth = 4e9, .hop_latency = 1e-6,
                            .collective_overhead = 3e-6, .elementwise_share = 1.0 / 3.0, .weight_price = 4.0};
}

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

static double number(const char *path, json_t *root, const struct key *key)
{
    json_t *v = json_object_get(root, key->name);
    if (!json_is_number(v))
        fail("%s: expected a number for '%s', found %s", path, key->name, v ? "something else" : "nothing");
    double x = json_number_value(v);
    if (!isfinite(x) || x < 0 || (x <= 0 && !key->may_be_zero))
        fail("%s: expected '%s' above zero, found %g", path, key->name, x);
    return x;
}

struct machine machine_read(const char *path)
{
    struct machine m = {.name = path};
    const char *known[KEYS + 3] = {"name", "version"};
    for (int i = 0; i < KEYS; i++)
        known[i + 2] = keys[i].name;
    json_t *root = json_read(path);
    json_known_keys(path, root, known);
    for (int i = 0; i < KEYS; i++)
        *(double *)(void *)((char *)&m + keys[i].offset) = number(path, root, &keys[i]);
    json_decref(root);
    return m;
}
