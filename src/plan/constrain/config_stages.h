/* config_stages: the pipeline stages of a device configuration (ir/configuration.h). */
#ifndef TPC_CONFIG_STAGES_H
#define TPC_CONFIG_STAGES_H

#include "ir/configuration.h"
#include "plan/constrain/constrain.h"

struct config_stage {
    const char *node;
    int stage;
};
struct config_stages {
    VEC(struct config_stage) list;
    struct name_index index; /* by node */
};
/* The stages that a configuration gives to nodes, with `stages` stages of that many ranks each; *to is empty before. Returns NULL, or the
 * end of a sentence that names the contradiction. */
const char *config_stages_read(struct arena *, const struct configuration *, int ranks, int stages, struct config_stages *to);
/* -1: no stage given. */
int config_stages_of(const struct config_stages *, const char *node);
/* The specs of one stage, its devices numbered from 0; specs without devices belong to every stage. The configuration must be without
 * faults. */
const struct configuration *config_stages_part(struct arena *, const struct configuration *, int ranks, int stage);

#endif
