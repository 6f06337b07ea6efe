/* model_texts: the files next to a model that define tokenization, the end and length limit of a text, and how token vectors are pooled
 * into one. */
#include "plan/input/input.h"

const char *const model_texts[MODEL_TEXTS] = {[TEXT_TOKENIZER] = "tokenizer.json",
                                              [TEXT_TOKENIZER_CONFIG] = "tokenizer_config.json",
                                              [TEXT_SPECIAL_TOKENS] = "special_tokens_map.json",
                                              [TEXT_GENERATION_CONFIG] = "generation_config.json",
                                              [TEXT_GENAI_CONFIG] = "genai_config.json",
                                              [TEXT_CONFIG] = "config.json",
                                              [TEXT_CHAT_TEMPLATE] = "chat_template.jinja",
                                              [TEXT_TOOL_TEMPLATE] = "chat_template.tool_use.jinja",
                                              [TEXT_POOLING] = "pooling_config.json"};

const char *model_text_beside(struct arena *a, const char *folder, enum model_text which)
{
    const char *path = path_beside(a, folder, model_texts[which]);
    const char *saved = which == TEXT_TOOL_TEMPLATE ? "additional_chat_templates/tool_use.jinja"
        : which == TEXT_POOLING                     ? "1_Pooling/config.json"
                                                    : NULL;
    return path || !saved ? path : path_beside(a, folder, saved);
}
