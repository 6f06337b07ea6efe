/* texts: the files beside a model that say how text becomes token ids, where a text ends and how long it may be. They travel with the
 * ranks. */
#include "plan/folder/folder.h"

const char *const folder_texts[FOLDER_TEXTS] = {"tokenizer.json",         "tokenizer_config.json", "special_tokens_map.json",
                                                "generation_config.json", "genai_config.json",     "config.json",
                                                "chat_template.jinja"};

struct text_list folder_copy_texts(struct arena *a, const char *model, const char *dir)
{
    struct text_list made = {{NULL, 0, 0}};
    for (int i = 0; i < FOLDER_TEXTS; i++) {
        const char *from = path_beside(a, path_dir(a, model), folder_texts[i]);
        const char *to = path_join(a, dir, folder_texts[i]);
        struct out out;
        if (!from || path_exists(to))
            continue;
        struct map file = map_file(from);
        out_open(&out, to);
        out_put(&out, file.at, file.bytes);
        (void)out_close(&out);
        map_close(file);
        VEC_PUSH(a, &made.text, to);
    }
    return made;
}
