/* A hash table from texts to items. */
#include "onnx/message/message.h"

#include <string.h>

const void *text_table_find(const struct text_table *table, const char *text)
{
    struct text_table *found = NULL;
    HASH_FIND_STR(table, text, found);
    return found ? found->item : NULL;
}

void text_table_add(struct arena *arena, struct text_table **table, const char *text, const void *item)
{
    struct arena *hash_arena = arena;
    struct text_table *entry = NEW(arena, struct text_table);
    entry->text = text;
    entry->item = item;
    HASH_ADD_KEYPTR(hh, *table, entry->text, strlen(entry->text), entry);
}
