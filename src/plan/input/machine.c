/* machine: the constants of the cost model; schemas/prices.def lists them. The reference profile is compiled in, so that the same model
 * gives the same plan everywhere; a file of tpc-run --calibrate describes a real machine. */
#include "op/prices.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

enum {
#define LIST_VERSION(number) MACHINE_VERSION = number
#include "schemas/prices.def"
};

struct machine_key {
    const char *name;
    size_t offset; /* in struct machine, or in struct link */
    enum price_unit unit;
    double reference;
};

static const struct machine_key keys[] = {
#define LINK(key, unit, reference, member, ...) {#key, offsetof(struct machine, level[0].member), unit, reference},
#define CONSTANT(key, unit, reference, ...) {#key, offsetof(struct machine, key), unit, reference},
#define PRICE(key, unit, reference, ...) CONSTANT(key, unit, reference, )
#define SHARED(key, unit, reference, ...) CONSTANT(key, unit, reference, ) CONSTANT(machine_##key, unit, reference, )
#include "schemas/prices.def"
};
enum { KEYS = sizeof keys / sizeof *keys };
_Static_assert(KEYS <= 64, "struct machine has a bit for each number");

/* Of a link of `levels`, which has all levels but the first. */
static const struct machine_key link_keys[] = {
#define LEVEL(key, unit, member, ...) {#key, offsetof(struct link, member), unit, 0},
#define LINK(key, unit, reference, member, ...) {#key, offsetof(struct link, member), unit, reference},
#include "schemas/prices.def"
};
enum { LINK_KEYS = sizeof link_keys / sizeof *link_keys };

#define MACHINE_LEVELS "levels"
#define MACHINE_ASSUMED "assumed"
#define MACHINE_SPEEDS "speeds"
#define MACHINE_MEMORY "memory"
/* Profiles of this version also have a price of resident bytes, which no longer exists. */
enum { PRICED_VERSION = 3 };
#define PRICE_OF_BYTES "weight_price"

/* Keys about the profile itself (struct machine_origin). */
static const char *const remarks[] = {
#define ABOUT(key, ...) #key,
#include "schemas/prices.def"
};
enum { REMARKS = sizeof remarks / sizeof *remarks };

#define ALL_KEYS (KEYS == 64 ? UINT64_MAX : ((uint64_t)1 << KEYS) - 1)

/* -1: no such name. */
static int key_number(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return i;
    return -1;
}

static double *number_at(void *of, const struct machine_key *key)
{
    return (double *)(void *)((char *)of + key->offset);
}

static bool may_be_zero(enum price_unit unit)
{
    return unit == PRICE_SECONDS || unit == PRICE_TIMES;
}

static double machine_number(const char *path, const json_t *root, const struct machine_key *key)
{
    const json_t *v = json_object_get(root, key->name);
    if (!json_is_number(v))
        fail("%s: expected a number for '%s', found %s", path, key->name,
             v ? "something else" : "nothing: tpc-run --calibrate FILE measures it");
    double x = json_number_value(v);
    if (!isfinite(x) || x < 0 || (x <= 0 && !may_be_zero(key->unit)))
        fail("%s: expected '%s' above zero, found %g", path, key->name, x);
    return x;
}

/* True: the version is PRICED_VERSION. */
static bool check_version(const char *where, const json_t *root)
{
    const json_t *version = json_object_get(root, "version");
    long long found = json_is_integer(version) ? (long long)json_integer_value(version) : 0;
    if (found != MACHINE_VERSION && found != PRICED_VERSION)
        fail("%s: expected a machine profile of version %d, found %s: tpc-run --calibrate FILE measures one", where, MACHINE_VERSION,
             version ? "another" : "no version");
    return found == PRICED_VERSION;
}

static struct link link_from(const char *where, const json_t *of)
{
    struct link link = {0};
    const char *known[LINK_KEYS + 1] = {NULL};
    if (!json_is_object(of))
        fail("%s: expected an object, a link and how many ranks are on each side of it", where);
    for (int i = 0; i < LINK_KEYS; i++)
        known[i] = link_keys[i].name;
    json_known_keys(where, of, known);
    for (int i = 0; i < LINK_KEYS; i++)
        *number_at(&link, &link_keys[i]) = machine_number(where, of, &link_keys[i]);
    return link;
}

/* A unit of a level consists of units of the level below. */
static void check_units(const char *where, double ranks, double below)
{
    if (ranks <= below || ranks > PLAN_RANKS || fmod(ranks, below) != 0)
        fail("%s: expected 'ranks' to be a multiple of the %g of the level below, up to %d, found %g", where, below, PLAN_RANKS, ranks);
}

/* Some level must have machines as units, because messages within a machine use shared memory. */
static void check_machines(const char *where, const struct machine *m)
{
    bool found = m->levels == 1 || m->machine_ranks <= 1;
    for (int i = 1; i < m->levels; i++)
        found |= m->level[i].ranks == m->machine_ranks;
    if (!found)
        fail("%s: expected a level whose 'ranks' are the %g of 'machine_ranks', found none", where, m->machine_ranks);
}

static void read_levels(const char *where, const json_t *root, struct machine *m)
{
    struct arena *tmp = arena_new();
    const json_t *levels = json_object_get(root, MACHINE_LEVELS);
    if (levels && !json_is_array(levels))
        fail("%s: expected a list for '%s', found something else", where, MACHINE_LEVELS);
    if (json_array_size(levels) >= LINK_LEVELS)
        fail("%s: '%s' has %zu entries, expected at most %d", where, MACHINE_LEVELS, json_array_size(levels), LINK_LEVELS - 1);
    m->level[0].ranks = 1;
    m->level[0].unit_bandwidth = INFINITY;
    m->levels = 1 + (int)json_array_size(levels);
    for (int i = 0; i + 1 < m->levels; i++) {
        const char *entry = arena_printf(tmp, "%s: %s[%d]", where, MACHINE_LEVELS, i);
        m->level[i + 1] = link_from(entry, json_array_get(levels, (size_t)i));
        check_units(entry, m->level[i + 1].ranks, m->level[i].ranks);
    }
    check_machines(where, m);
    arena_free(tmp);
}

/* A rank's speed, relative to the profile. */
static double checked_speed(const char *where, int rank, double speed)
{
    const double least = 1e-3, most = 1e3;
    if (!(speed >= least && speed <= most))
        fail("%s: expected a speed from %g to %g for rank %d, relative to the profile's numbers, found %g", where, least, most, rank,
             speed);
    return speed;
}

static void read_speeds(struct arena *a, const char *where, const json_t *root, struct machine *m)
{
    const json_t *list = json_member(where, root, MACHINE_SPEEDS, JSON_ARRAY), *v;
    size_t n = json_array_size(list), i;
    double *speed = NEWN(a, double, (int)n + 1);
    if (list && (n < 1 || n > PLAN_RANKS))
        fail("%s: '" MACHINE_SPEEDS "' has %zu entries, expected 1 to %d", where, n, PLAN_RANKS);
    json_array_foreach(list, i, v)
    {
        if (!json_is_number(v))
            fail("%s: " MACHINE_SPEEDS "[%zu]: expected a number, found %s", where, i, json_kind(v));
        speed[i] = checked_speed(where, (int)i, json_number_value(v));
    }
    m->speeds = (int)n;
    m->speed = speed;
}

void machine_set_speeds(struct arena *a, struct machine *m, const char *list)
{
    double *speed = NEWN(a, double, PLAN_RANKS);
    int n = number_list("--speed", list, "rank", PLAN_RANKS, speed);
    for (int r = 0; r < n; r++)
        (void)checked_speed("--speed", r, speed[r]);
    m->speeds = n;
    m->speed = speed;
}

static void read_memory(struct arena *a, const char *where, const json_t *root, struct machine *m)
{
    const json_t *list = json_member(where, root, MACHINE_MEMORY, JSON_ARRAY), *v;
    size_t n = json_array_size(list), i;
    int64_t *memory = NEWN(a, int64_t, (int)n + 1);
    if (list && (n < 1 || n > PLAN_RANKS))
        fail("%s: '" MACHINE_MEMORY "' has %zu entries, expected 1 to %d", where, n, PLAN_RANKS);
    json_array_foreach(list, i, v)
    {
        double bytes = json_number_value(v);
        if (!(bytes >= 1 && bytes <= 1e18))
            fail("%s: " MACHINE_MEMORY "[%zu]: expected bytes, from 1 to 1e18, found %s", where, i,
                 json_is_number(v) ? arena_printf(a, "%g", bytes) : json_kind(v));
        memory[i] = json_is_integer(v) ? (int64_t)json_integer_value(v) : (int64_t)bytes;
    }
    m->memories = (int)n;
    m->memory = memory;
}

int64_t machine_most_memory(const struct machine *m)
{
    int64_t most = 0;
    for (int r = 0; r < m->memories; r++)
        most = m->memory[r] > most ? m->memory[r] : most;
    return most;
}

void machine_note_measured(struct machine *m, const char *key)
{
    int i = key_number(key);
    require(i >= 0);
    m->assumed &= ~((uint64_t)1 << i);
    m->tells = true;
}

static void read_assumed(const char *where, const json_t *root, struct machine *m)
{
    const json_t *list = json_object_get(root, MACHINE_ASSUMED), *v;
    size_t i;
    m->tells = list != NULL;
    if (list && !json_is_array(list))
        fail("%s: expected a list of keys for '" MACHINE_ASSUMED "', found something else", where);
    json_array_foreach(list, i, v)
    {
        int k = json_is_string(v) ? key_number(json_string_value(v)) : -1;
        if (k < 0)
            fail("%s: " MACHINE_ASSUMED "[%zu]: expected the key of a number, found %s", where, i,
                 json_is_string(v) ? json_string_value(v) : "something else");
        m->assumed |= (uint64_t)1 << k;
    }
}

struct machine machine_from(struct arena *a, const char *where, const json_t *root)
{
    struct machine m = {.name = where};
    const char *known[KEYS + REMARKS + 5] = {NULL};
    bool priced = check_version(where, root);
    for (int i = 0; i < KEYS; i++)
        known[i] = keys[i].name;
    memcpy(known + KEYS, remarks, sizeof remarks);
    known[KEYS + REMARKS] = MACHINE_LEVELS;
    known[KEYS + REMARKS + 1] = MACHINE_SPEEDS;
    known[KEYS + REMARKS + 2] = MACHINE_MEMORY;
    known[KEYS + REMARKS + 3] = priced ? PRICE_OF_BYTES : NULL;
    json_known_keys(where, root, known);
    for (int i = 0; i < KEYS; i++)
        *number_at(&m, &keys[i]) = machine_number(where, root, &keys[i]);
    read_levels(where, root, &m);
    read_assumed(where, root, &m);
    read_speeds(a, where, root, &m);
    read_memory(a, where, root, &m);
    m.waited = json_number_value(json_object_get(root, "waited"));
    return m;
}

int machine_most_ranks(const struct machine *m)
{
    int speeds = m->speeds ? m->speeds : PLAN_RANKS, memories = m->memories ? m->memories : PLAN_RANKS;
    return speeds < memories ? speeds : memories;
}

bool machine_speeds_differ(const struct machine *m, int ranks)
{
    for (int r = 1; r < ranks && r < m->speeds; r++)
        if (m->speed[r] != m->speed[0])
            return true;
    return false;
}

/* The ranks of a machine together must be at least as fast as one alone. */
static void check_together(const char *where, const struct machine *m)
{
    const struct {
        const char *key;
        double alone, together;
    } speed[] = {
#define SHARED(key, ...) {#key, m->key, m->machine_##key},
#include "schemas/prices.def"
    };
    for (size_t i = 0; m->machine_ranks > 1 && i < sizeof speed / sizeof *speed; i++)
        if (speed[i].together < speed[i].alone)
            fail("%s: expected 'machine_%s', of the %g ranks of a machine together, to be at least '%s', the %g of one, found %g", where,
                 speed[i].key, m->machine_ranks, speed[i].key, speed[i].alone, speed[i].together);
}

static struct machine read_machine(struct arena *a, const char *name, json_t *root)
{
    if (json_is_object(json_object_get(root, "machine")))
        fail("%s: is a plan, expected a machine, which 'jq .machine %s' takes out of it", name, name);
    struct machine m = machine_from(a, name, root);
    check_together(name, &m);
    if (check_version(name, root))
        diag_tell("%s is of version %d, read without '" PRICE_OF_BYTES "': --memory says what ranks may hold", name, PRICED_VERSION);
    if (m.waited > MACHINE_DISTURBED)
        diag_tell("%s was measured while a rank waited %.0f%% of the time for a core: repeat tpc-run --calibrate on a quiet machine", name,
                  100 * m.waited);
    json_decref(root);
    return m;
}

struct machine machine_reference(void)
{
    struct machine m = {.name = "reference", .assumed = ALL_KEYS, .levels = 1, .level[0] = {.ranks = 1, .unit_bandwidth = INFINITY}};
    for (int i = 0; i < KEYS; i++)
        *number_at(&m, &keys[i]) = keys[i].reference;
    return m;
}

/* Keys whose price the file calls the reference's: with the reference's value, or with another, which the user set. */
struct named_keys {
    const char *text; /* a, b, c */
    int n;
};
static struct named_keys assumed_keys(struct arena *a, const struct machine *m, bool set)
{
    struct machine copy = *m;
    struct named_keys k = {"", 0};
    for (int i = 0; i < KEYS; i++)
        if (m->assumed >> i & 1 && (*number_at(&copy, &keys[i]) != keys[i].reference) == set)
            k = (struct named_keys){arena_printf(a, "%s%s%s", k.text, k.n ? ", " : "", keys[i].name), k.n + 1};
    return k;
}

const char *machine_origins(struct arena *a, const struct machine *m)
{
    struct named_keys set = assumed_keys(a, m, true), reference = assumed_keys(a, m, false);
    const char *measured = !m->tells ? "measured"
        : !set.n && !reference.n     ? "all measured"
                                     : arena_printf(a, "%d measured", KEYS - set.n - reference.n);
    const char *waited = m->waited > MACHINE_DISTURBED
        ? arena_printf(a, " while ranks waited %.0f %% of the time for a core", 100 * m->waited)
        : "";
    if (!m->tells)
        return *waited ? arena_printf(a, "%s%s", measured, waited) : NULL;
    return arena_printf(a, "%s%s%s%s", measured, waited, set.n ? arena_printf(a, ", %d set: %s", set.n, set.text) : "",
                        reference.n ? arena_printf(a, "%s %d of the reference: %s", set.n ? ";" : ",", reference.n, reference.text) : "");
}

/* A file, or else an installed profile by name. */
static const char *find(struct arena *a, const char *name)
{
    const char *installed = path_exists(name) || strchr(name, '/') ? NULL : datafile_path(a, arena_printf(a, "machines/%s.json", name));
    return installed ? installed : name;
}

struct machine machine_read(struct arena *a, const char *name)
{
    return read_machine(a, name, json_read(find(a, name)));
}

static void put_number(json_t *to, const void *of, const struct machine_key *key)
{
    json_object_set_new(to, key->name, json_real(*(const double *)(const void *)((const char *)of + key->offset)));
}

void machine_put(json_t *to, const struct machine *m)
{
    json_object_set_new(to, "version", json_integer(MACHINE_VERSION));
    for (int i = 0; i < KEYS; i++)
        put_number(to, m, &keys[i]);
    json_t *levels = m->levels > 1 ? json_array() : NULL;
    for (int l = 1; l < m->levels; l++) {
        json_t *link = json_object();
        for (int i = 0; i < LINK_KEYS; i++)
            put_number(link, &m->level[l], &link_keys[i]);
        json_array_append_new(levels, link);
    }
    if (levels)
        json_object_set_new(to, MACHINE_LEVELS, levels);
    json_t *speeds = m->speeds ? json_array() : NULL;
    for (int r = 0; r < m->speeds; r++)
        json_array_append_new(speeds, json_real(m->speed[r]));
    if (speeds)
        json_object_set_new(to, MACHINE_SPEEDS, speeds);
    json_t *memory = m->memories ? json_array() : NULL;
    for (int r = 0; r < m->memories; r++)
        json_array_append_new(memory, json_integer(m->memory[r]));
    if (memory)
        json_object_set_new(to, MACHINE_MEMORY, memory);
    json_t *assumed = m->tells ? json_array() : NULL;
    for (int i = 0; assumed && i < KEYS; i++)
        if (m->assumed >> i & 1)
            json_array_append_new(assumed, json_string(keys[i].name));
    if (assumed)
        json_object_set_new(to, MACHINE_ASSUMED, assumed);
    if (m->tells || m->waited > 0)
        json_object_set_new(to, "waited", json_real(m->waited));
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
    machine_put(o, m);
    char *text = json_dump(a, o, JSON_INDENT(2));
    json_decref(o);
    return text;
}
