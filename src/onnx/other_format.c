/* other_format: recognises files of other formats by their first bytes, and says how to get a model that tpc reads. */
#include "onnx/message/message.h"
#include "onnx/onnx.h"

#include <string.h>

static const struct {
    size_t at, bytes;
    const char *magic, *what;
} formats[] = {
    {0, 4, "GGUF",
     "a GGUF file (llama.cpp), which has weights and no graph: 'optimum-cli export onnx --model FOLDER OUT' exports the "
     "Hugging Face model that it was made from"},
    {0, 4, "PK\003\004", "a zip archive, as torch.save and Keras write them: export the model with torch.onnx.export or tf2onnx"},
    {0, 4, "\200\002\212\n", "a Python pickle, as torch.save writes it: export the model with torch.onnx.export"},
    {0, 8, "\211HDF\r\n\032\n", "an HDF5 file (Keras): export the model with tf2onnx"},
    {4, 4, "TFL3", "a TensorFlow Lite model: convert it with tf2onnx"},
    {4, 4, "ORTM", "in ONNX Runtime's own format: take the ONNX file that it was made from"},
};

/* Its header: 8 bytes with the length of the JSON that follows. */
static bool is_safetensors(struct map file)
{
    uint64_t length = 0;
    for (size_t i = 0; file.bytes > 8 && i < 8; i++)
        length |= (uint64_t)file.at[i] << 8 * i;
    return length > 0 && length <= file.bytes - 8 && file.at[8] == '{';
}

void other_format_refuse(const char *path, struct map file)
{
    if (is_safetensors(file))
        fail("%s: holds weights in safetensors, no graph: 'optimum-cli export onnx --model FOLDER OUT' makes an ONNX model of both", path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (file.bytes >= formats[i].at + formats[i].bytes && memcmp(file.at + formats[i].at, formats[i].magic, formats[i].bytes) == 0)
            fail("%s: not an ONNX file but %s", path, formats[i].what);
}
