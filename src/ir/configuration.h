/* ir/configuration: ONNX's multi-device annotations (IR version 11), as in the file. src/plan/constrain/sharding_spec.c interprets them. */
#ifndef TPC_IR_CONFIGURATION_H
#define TPC_IR_CONFIGURATION_H

#include "base/base.h"

struct device_group {
    int64_t key;
    int n;
    const int64_t *device;
}; /* key: an entry of a device list that stands for these */
struct shards {
    bool sized;
    int64_t size;
    const char *symbol;
    int64_t count;
}; /* sized, or symbol not NULL: the size is known */
struct sharded_axis {
    int64_t axis;
    int n;
    const struct shards *part;
};                                                            /* parts: dimensions merged in the axis */
enum sharded { SHARDED_READS, SHARDED_MAKES, SHARDED_KEEPS }; /* an operand; a result; an operand without a spec, of a node with specs */
struct sharding {
    const char *node, *tensor;
    enum sharded how; /* KEEPS: read as its producer leaves it, and the other fields are empty */
    int ndevice, ngroup, naxis;
    const int64_t *device;
    const struct device_group *group;
    const struct sharded_axis *axis;
};
struct pipeline_stage {
    const char *node;
    int64_t stage;
};
struct configuration {
    const char *name;
    int64_t devices;
    VEC(struct sharding) shardings;
    VEC(struct pipeline_stage) stages;
};

#endif
