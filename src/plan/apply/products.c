/* products: how the products of a rank file that have weights are split. A run shards an adapter of such a product likewise: its A like the
 * product's operand, its B like the result (src/job/peft). */
#include "ir/rank_meta.h"
#include "plan/apply/apply.h"
#include "plan/lora/lora.h"

/* The split of its last dimension; NULL: none. */
static const struct split *last_split(const struct value *v)
{
    return v->placed && v->place.kind == PLACE_S && v->place.dim == v->type.rank - 1 ? v->place.split : NULL;
}

void plan_note_products(struct graph *to, struct graph *global)
{
    if (global->ranks < 2 || global->trained.n) /* a training step has its own adapters */
        return;
    struct lora_products all = lora_products_find(global);
    EACH (const struct lora_product, p, all.list) {
        const struct rank_product product = {last_split(p->node->in[0]), last_split(p->node->out[0])};
        rank_meta_set_product(to, p->node->name, &product);
    }
}
