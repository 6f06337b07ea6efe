/* machine: the constants of the cost model, of which schemas/prices.def is the list. The reference profile is compiled in, so that the same
 * model gives the same plan everywhere; a file written by tpc-run --calibrate describes a real machine. */
#include "op/prices.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

enum { MACHINE_VERSION = 3 }; /* of the list of numbers */

struct machine_key {
    const char *name;
    size_t offset;
    enum price_unit unit;
    double reference;
};

static const struct machine_key keys[] = {
#define ELEMENT(key, unit, reference, member, ...) {#key, offsetof(struct machine, member), unit, reference},
#define CONSTANT(key, unit, reference, ...) {#key, offsetof(struct machine, key), unit, reference},
#define PRICE(key, unit, reference, ...) CONSTANT(key, unit, reference, )
#define SHARED(key, unit, reference, ...) CONSTANT(key, unit, reference, ) CONSTANT(machine_##key, unit, reference, )
#include "schemas/prices.def"
};
enum { KEYS = sizeof keys / sizeof *keys };

/* What a profile may have about itself (struct machine_origin). */
static const char *const remarks[] = {
#define ABOUT(key, ...) #key,
#include "schemas/prices.def"
};
enum { REMARKS = sizeof remarks / sizeof *remarks };

static double *number_at(struct machine *m, const struct machine_key *key)
{
    return (double *)(void *)((char *)m + key->offset);
}

static bool may_be_zero(enum price_unit unit)
{
    return unit == PRICE_SECONDS || unit == PRICE_TIMES;
}

static double machine_number(const char *path, const json_t *root, const struct machine_key *key)
{
    const json_t *v = json_object_get(root, key->name);
    if (!json_is_number(v))
        fail("%s: expected a number for '%s', found %s", path, key->name, v ? "something else" : "nothing");
    double x = json_number_value(v);
    if (!isfinite(x) || x < 0 || (x <= 0 && !may_be_zero(key->unit)))
        fail("%s: expected '%s' above zero, found %g", path, key->name, x);
    return x;
}

static void check_version(const char *where, const json_t *root)
{
    const json_t *version = json_object_get(root, "version");
    long long found = json_is_integer(version) ? (long long)json_integer_value(version) : 0;
    if (found != MACHINE_VERSION)
        fail("%s: expected a machine profile of version %d, found %s: tpc-run --calibrate FILE measures one", where, MACHINE_VERSION,
             version ? "another" : "no version");
}

struct machine machine_from(const char *where, const json_t *root)
{
    struct machine m = {.name = where};
    const char *known[KEYS + REMARKS + 1] = {NULL};
    check_version(where, root);
    for (int i = 0; i < KEYS; i++)
        known[i] = keys[i].name;
    memcpy(known + KEYS, remarks, sizeof remarks);
    json_known_keys(where, root, known);
    for (int i = 0; i < KEYS; i++)
        *number_at(&m, &keys[i]) = machine_number(where, root, &keys[i]);
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
    struct machine m = {.name = "reference"};
    for (int i = 0; i < KEYS; i++)
        *number_at(&m, &keys[i]) = keys[i].reference;
    return m;
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
    json_object_set_new(to, "version", json_integer(MACHINE_VERSION));
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
