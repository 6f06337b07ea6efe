/* fuzz: what the fuzz targets and their replay share. */
#ifndef TPC_FUZZ_H
#define TPC_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
