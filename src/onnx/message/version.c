/* The version of the protobuf library, for --version. */
#include "onnx/onnx.h"

#include <protobuf-c/protobuf-c.h>

const char *onnx_library(void)
{
    return protobuf_c_version();
}
