/* read: reads adapters from PEFT's files. */
#include "job/adapters/adapters.h"
#include "kern/core/core.h"
#include "plan/input/input.h"

#include <math.h>
#include <string.h>

/* ---- adapter_config.json ---- */

static bool is_empty(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) || (json_is_array(v) && !json_array_size(v)) ||
        (json_is_object(v) && !json_object_size(v)) || (json_is_string(v) && strcmp(json_string_value(v), "none") == 0);
}

/* Known keys: initialisation, the base model, and what tpc reads. Any other key with a value may change the meaning. */
static const char *const known[] = {"auto_mapping",
                                    "base_model_name_or_path",
                                    "corda_config",
                                    "eva_config",
                                    "exclude_modules",
                                    "fan_in_fan_out",
                                    "inference_mode",
                                    "init_lora_weights",
                                    "layers_pattern",
                                    "layers_to_transform",
                                    "loftq_config",
                                    "lora_alpha",
                                    "lora_dropout",
                                    "lora_ga_config",
                                    "megatron_core",
                                    "peft_type",
                                    "peft_version",
                                    "qalora_group_size",
                                    "r",
                                    "rank_pattern",
                                    "revision",
                                    "runtime_config",
                                    "target_modules",
                                    "task_type",
                                    "use_rslora"};

static void check_keys(const char *path, const json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        bool found = is_empty(value);
        for (size_t i = 0; !found && i < sizeof known / sizeof *known; i++)
            found = strcmp(key, known[i]) == 0;
        if (!found)
            fail("%s: its '%s' asks for more than low-rank adapters, which alone tpc applies", path, key);
    }
}

/* Other initialisations also change the model's weights. */
static void check_start(const char *path, const json_t *root)
{
    static const char *const plain[] = {"gaussian", "eva", "orthogonal"};
    const char *way = json_string_value(json_object_get(root, "init_lora_weights"));
    bool found = !way;
    for (size_t i = 0; !found && i < sizeof plain / sizeof *plain; i++)
        found = strcmp(way, plain[i]) == 0;
    if (!found)
        fail("%s: its 'init_lora_weights' is '%s', which changes the model's own weights: convert it to a plain adapter with PEFT", path,
             way);
}

static void check_config(const char *path, const json_t *root)
{
    const json_t *kind = json_object_get(root, "peft_type");
    if (!json_is_string(kind) || strcmp(json_string_value(kind), "LORA") != 0)
        fail("%s: its 'peft_type' is '%s', expected 'LORA'", path, json_is_string(kind) ? json_string_value(kind) : json_kind(kind));
    check_keys(path, root);
    check_start(path, root);
}

/* The rank of every adapter; 0: they differ. */
static int64_t read_config(struct adapters *s, const char *path)
{
    json_t *root = json_read(path);
    const json_t *alpha = json_object_get(root, "lora_alpha"), *rank = json_object_get(root, "r");
    check_config(path, root);
    s->alpha = json_number_value(alpha);
    if (!json_is_number(alpha) || !(s->alpha > 0 && isfinite(s->alpha)))
        fail("%s: its 'lora_alpha' is no number above 0", path);
    if (!json_is_integer(rank) || json_integer_value(rank) < 1 || json_integer_value(rank) > LORA_RANK)
        fail("%s: its 'r' is no rank of 1 to %d", path, LORA_RANK);
    s->by_root = json_is_true(json_object_get(root, "use_rslora"));
    int64_t all = is_empty(json_object_get(root, "rank_pattern")) ? json_integer_value(rank) : 0;
    json_decref(root);
    return all;
}

/* ---- adapter_model.safetensors ---- */

/* The module of a tensor whose name has this ending; NULL: another ending. */
static const char *module_of(struct arena *a, const char *name, const char *end)
{
    size_t skip = strncmp(name, ADAPTERS_PREFIX, strlen(ADAPTERS_PREFIX)) == 0 ? strlen(ADAPTERS_PREFIX) : 0, n = strlen(name + skip);
    if (n <= strlen(end) || !path_ends(name, end))
        return NULL;
    return arena_strndup(a, name + skip, n - strlen(end));
}

static void check_tensor(const struct adapters *s, const char *name, const struct tensor *t)
{
    bool floats = t->dtype == DT_F32 || t->dtype == DT_F16 || t->dtype == DT_BF16;
    if (!floats || t->rank != 2)
        fail("%s: '%s' is %s of %d dimensions, expected f32, f16 or bf16 of 2", s->path, name, dtype_name(t->dtype), t->rank);
}

static void check_ranks(const struct adapters *s, int64_t rank)
{
    EACH (const struct adapter, p, s->list) {
        const struct tensor *a = p->tensor[0], *b = p->tensor[1];
        if (!a || !b)
            fail("%s: has '%s', but no %s of the same module", s->path, p->name[a ? 0 : 1], a ? LORA_B : LORA_A);
        if (a->dim[0] < 1 || a->dim[0] > LORA_RANK || a->dim[0] != b->dim[1] || (rank && a->dim[0] != rank))
            fail("%s: '%s' has rank %lld and '%s' rank %lld, expected %s%lld", s->path, p->name[0], (long long)a->dim[0], p->name[1],
                 (long long)b->dim[1], rank ? "" : "one, of 1 to ", (long long)(rank ? rank : LORA_RANK));
    }
}

struct adapters adapters_read(struct arena *a, const char *path)
{
    bool folder = path_is_folder(path);
    if (!path_exists(path))
        fail("%s: no such file or folder", path);
    struct adapters s = {.path = folder ? path_join(a, path, ADAPTERS_FILE) : path};
    struct name_index at = {0};
    int64_t rank = read_config(&s, path_join(a, folder ? path : path_dir(a, path), ADAPTERS_CONFIG));
    s.file = safetensors_read(a, s.path);
    for (int i = 0; i < s.file->n; i++) {
        const char *name = s.file->name[i], *module = module_of(a, name, LORA_A);
        int which = module ? 0 : 1;
        module = module ? module : module_of(a, name, LORA_B);
        if (!module)
            fail("%s: '%s' is no " ADAPTERS_PREFIX "MODULE" LORA_A " and no " LORA_B, s.path, name);
        check_tensor(&s, name, &s.file->tensor[i]);
        int k = name_index_find(&at, module);
        if (k < 0) {
            k = s.list.n;
            name_index_put(a, &at, module, k);
            VEC_PUSH(a, &s.list, ((struct adapter){.module = module}));
        }
        if (s.list.at[k].name[which])
            fail("%s: '%s' and '%s' are of one module", s.path, s.list.at[k].name[which], name);
        s.list.at[k].name[which] = name;
        s.list.at[k].tensor[which] = &s.file->tensor[i];
    }
    if (!s.list.n)
        fail("%s: holds no adapters", s.path);
    check_ranks(&s, rank);
    return s;
}

int64_t adapter_rank(const struct adapter *p)
{
    return p->tensor[0]->dim[0];
}

double adapter_factor(const struct adapters *s, const struct adapter *p)
{
    double rank = (double)adapter_rank(p);
    return s->alpha / (s->by_root ? sqrt(rank) : rank);
}

const float *adapter_turned(struct arena *a, const struct adapter *p, int which)
{
    const struct tensor *t = p->tensor[which];
    int64_t rows = t->dim[0], columns = t->dim[1];
    float *turned = NEWN(a, float, rows *columns);
    struct arena *tmp = arena_new();
    void *bytes = arena_alloc(tmp, tensor_bytes(t) + 1); /* files have them unaligned */
    float *plain = NEWN(tmp, float, rows *columns);
    memcpy(bytes, t->data, tensor_bytes(t));
    convert_to_f32(t->dtype, bytes, rows * columns, plain);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            turned[c * rows + r] = plain[r * columns + c];
    arena_free(tmp);
    return turned;
}
