/* machine: the constants of the cost model. The reference profile, schemas/machines/reference.json, is compiled in, so that the same
 * model gives the same plan everywhere; a file written by tpc-run --calibrate describes a real machine. */
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/reference.h"

#include <math.h>
#include <string.h>

struct machine_key {
    const char *name;
    size_t offset;
    bool may_be_zero;
    double otherwise; /* in a profile made before there was this key; below zero: it must have it */
    const char *as;   /* else it is what this earlier key is; NULL: it has a number of its own */
};

static const struct machine_key keys[] = {
    {"flops", offsetof(struct machine, flops), false, -1, NULL},
    {"memory_bandwidth", offsetof(struct machine, memory_bandwidth), false, -1, NULL},
    {"machine_ranks", offsetof(struct machine, machine_ranks), false, -1, NULL},
    {"machine_flops", offsetof(struct machine, machine_flops), false, -1, NULL},
    {"machine_memory_bandwidth", offsetof(struct machine, machine_memory_bandwidth), false, -1, NULL},
    {MACHINE_KEY, offsetof(struct machine, link_bandwidth), false, -1, NULL},
    {"link_slowdown_1k", offsetof(struct machine, link_slowdown[0]), true, 1, NULL},
    {"link_slowdown_4k", offsetof(struct machine, link_slowdown[1]), true, 1, NULL},
    {"link_slowdown_16k", offsetof(struct machine, link_slowdown[2]), true, 1, NULL},
    {"link_slowdown_64k", offsetof(struct machine, link_slowdown[3]), true, 1, NULL},
    {"link_slowdown_256k", offsetof(struct machine, link_slowdown[4]), true, 1, NULL},
    {"hop_latency", offsetof(struct machine, hop_latency), true, -1, NULL},
    {"collective_overhead", offsetof(struct machine, collective_overhead), true, -1, NULL},
    {"reduce_seconds", offsetof(struct machine, reduce_seconds), true, -1, NULL},
    {"overlap_overhead", offsetof(struct machine, overlap_overhead), true, 0, NULL},
    {"overlap_share", offsetof(struct machine, overlap_share), true, 0, NULL},
    {"overlap_slowdown", offsetof(struct machine, overlap_slowdown), false, 1, NULL},
    {"node_overhead", offsetof(struct machine, node_overhead), true, -1, NULL},
    {"elementwise_share", offsetof(struct machine, elementwise_share), true, -1, NULL},
    {"pass_bandwidth_1m", offsetof(struct machine, pass_bandwidth[0]), false, -1, "memory_bandwidth"},
    {"pass_bandwidth_4m", offsetof(struct machine, pass_bandwidth[1]), false, -1, "memory_bandwidth"},
    {"pass_bandwidth_16m", offsetof(struct machine, pass_bandwidth[2]), false, -1, "memory_bandwidth"},
    {"pass_bandwidth_64m", offsetof(struct machine, pass_bandwidth[3]), false, -1, "memory_bandwidth"},
    {"function_seconds", offsetof(struct machine, function_seconds), true, 0, NULL},
    {"erf_seconds", offsetof(struct machine, erf_seconds), true, -1, "function_seconds"},
    {"column_seconds", offsetof(struct machine, column_seconds), true, -1, "function_seconds"},
    {"code_seconds", offsetof(struct machine, code_seconds), true, 0, NULL},
    {"sum_seconds", offsetof(struct machine, sum_seconds), true, -1, "code_seconds"},
    {"row_seconds", offsetof(struct machine, row_seconds), true, 0, NULL},
    {"repeat_seconds", offsetof(struct machine, repeat_seconds), true, -1, "row_seconds"},
    {"turn_seconds", offsetof(struct machine, turn_seconds), true, 0, NULL},
    {"half_bandwidth", offsetof(struct machine, half_bandwidth), false, -1, "memory_bandwidth"},
    {"machine_half_bandwidth", offsetof(struct machine, machine_half_bandwidth), false, -1, "machine_memory_bandwidth"},
    {"code_bandwidth", offsetof(struct machine, code_bandwidth), false, -1, "memory_bandwidth"},
    {"machine_code_bandwidth", offsetof(struct machine, machine_code_bandwidth), false, -1, "machine_memory_bandwidth"},
    {"byte_bandwidth", offsetof(struct machine, byte_bandwidth), false, -1, "code_bandwidth"},
    {"machine_byte_bandwidth", offsetof(struct machine, machine_byte_bandwidth), false, -1, "machine_code_bandwidth"},
    {"vector_lanes", offsetof(struct machine, vector_lanes), false, 1, NULL},
    {"integer_speed", offsetof(struct machine, integer_speed), false, 1, NULL},
    {"conv_speed", offsetof(struct machine, conv_speed), false, 1, NULL},
    {"depthwise_speed", offsetof(struct machine, depthwise_speed), false, 1, NULL},
    {"integer_conv_speed", offsetof(struct machine, integer_conv_speed), false, 1, NULL},
    {"integer_depthwise_speed", offsetof(struct machine, integer_depthwise_speed), false, 1, NULL},
    {"conv_overhead", offsetof(struct machine, conv_overhead), true, -1, "node_overhead"},
    {"bf16_seconds", offsetof(struct machine, bf16_seconds), true, 0, NULL},
    {"q8_seconds", offsetof(struct machine, q8_seconds), true, 0, NULL},
    {"weight_price", offsetof(struct machine, weight_price), true, -1, NULL},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* What a profile may have about itself (struct machine_origin). */
static const char *const remarks[] = {"name",  "version", "date",    "library",   "communicator",
                                      "cores", "ranks",   "threads", "fit_error", "waited"};
enum { REMARKS = sizeof remarks / sizeof *remarks };

static double *number_at(struct machine *m, const struct machine_key *key)
{
    return (double *)(void *)((char *)m + key->offset);
}

static const struct machine_key *find_key(const char *name)
{
    int i = 0;
    while (strcmp(keys[i].name, name) != 0)
        i++;
    return &keys[i];
}

static double machine_number(const char *path, const json_t *root, const struct machine_key *machine_key)
{
    const json_t *v = json_object_get(root, machine_key->name);
    if (!v && machine_key->otherwise >= 0)
        return machine_key->otherwise;
    if (!json_is_number(v))
        fail("%s: expected a number for '%s', found %s", path, machine_key->name, v ? "something else" : "nothing");
    double x = json_number_value(v);
    if (!isfinite(x) || x < 0 || (x <= 0 && !machine_key->may_be_zero))
        fail("%s: expected '%s' above zero, found %g", path, machine_key->name, x);
    return x;
}

struct machine machine_from(const char *where, const json_t *root)
{
    struct machine m = {.name = where};
    const char *known[KEYS + REMARKS + 1] = {NULL};
    for (int i = 0; i < KEYS; i++)
        known[i] = keys[i].name;
    memcpy(known + KEYS, remarks, sizeof remarks);
    json_known_keys(where, root, known);
    for (int i = 0; i < KEYS; i++) {
        bool absent = keys[i].as && !json_object_get(root, keys[i].name);
        *number_at(&m, &keys[i]) = absent ? *number_at(&m, find_key(keys[i].as)) : machine_number(where, root, &keys[i]);
    }
    return m;
}

static struct machine read_machine(const char *name, json_t *root)
{
    if (json_is_object(json_object_get(root, "machine")))
        fail("%s: is a plan, expected a machine, which 'jq .machine %s' takes out of it", name, name);
    struct machine m = machine_from(name, root);
    double waited = json_number_value(json_object_get(root, "waited"));
    if (waited > MACHINE_DISTURBED)
        diag_tell("%s was measured while a rank waited %.0f%% of the time for a core: repeat tpc-run --calibrate on a quiet machine", name,
                  100 * waited);
    json_decref(root);
    return m;
}

struct machine machine_reference(void)
{
    return read_machine("reference", json_parse("reference", machine_reference_text, sizeof machine_reference_text - 1));
}

bool machine_has_reference_link(const struct machine *m)
{
    struct machine r = machine_reference();
    return m->link_bandwidth == r.link_bandwidth && m->hop_latency == r.hop_latency && m->collective_overhead == r.collective_overhead;
}

/* A file, else the name of an installed profile. */
static const char *find(struct arena *a, const char *name)
{
    const char *installed = path_exists(name) || strchr(name, '/') ? NULL : datafile_path(a, arena_printf(a, "machines/%s.json", name));
    return installed ? installed : name;
}

struct machine machine_read(struct arena *a, const char *name)
{
    return read_machine(name, json_read(find(a, name)));
}

void machine_put(json_t *to, const struct machine *m)
{
    for (int i = 0; i < KEYS; i++)
        json_object_set_new(to, keys[i].name, json_real(*(const double *)(const void *)((const char *)m + keys[i].offset)));
}

char *machine_json(struct arena *a, const struct machine *m, const struct machine_origin *from)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(m->name));
    json_object_set_new(o, "date", json_string(from->date));
    json_object_set_new(o, "library", json_string(from->library));
    json_object_set_new(o, "communicator", json_string(from->communicator));
    json_object_set_new(o, "cores", json_integer((json_int_t)from->cores));
    json_object_set_new(o, "ranks", json_integer((json_int_t)from->ranks));
    json_object_set_new(o, "threads", json_integer((json_int_t)from->threads));
    json_object_set_new(o, "fit_error", json_real(from->fit_error));
    json_object_set_new(o, "waited", json_real(from->waited));
    machine_put(o, m);
    char *text = json_dump(a, o, JSON_INDENT(2));
    json_decref(o);
    return text;
}
