/* plugin: tpc_load_plugin. */
#include "op/plugin/plugin.h"

#include "api/api.h"

static void load(void *path)
{
    plugin_load(path);
}

int tpc_load_plugin(const char *path)
{
    if (!path || !*path)
        return error_invalid("tpc_load_plugin: the path of a library has to be given");
    struct scope *scope = scope_new();
    if (!scope)
        return error_memory();
    int status = scope_do(scope, load, (void *)(uintptr_t)path) ? TPC_OK : error_of_scope(scope);
    scope_free(scope);
    return status;
}
