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
/* The stages that a configuration gives to nodes, of `stages` of that many ranks each; *to is empty before. NULL, or the end of a sentence
 * that names what contradicts itself or these numbers. */
const char *config_stages_read(struct arena *, const struct configuration *, int ranks, int stages, struct config_stages *to);
/* -1: none is given. */
int config_stages_of(const struct config_stages *, const char *node);
/* The specs of one stage, its devices numbered from 0; specs that name no devices are of every stage. Of a configuration without faults. */
const struct configuration *config_stages_part(struct arena *, const struct configuration *, int ranks, int stage);

#endif
