/* lora: low-rank adapters (Hu et al. 2021): a product of x with a weight W of r rows and c columns becomes x W + (x A) B f, where A has few
 * columns, B as many rows, and f is a number. They are ordinary nodes, so placements, prices and gradients of adapters are as those of any
 * product. */
#ifndef TPC_LORA_H
#define TPC_LORA_H

#include "plan/plan.h"

enum { LORA_RANK = 1 << 16 }; /* of an adapter at most */

/* A MatMul, Gemm or product of few bits, of floats with constants, by which an adapter may lie. */
struct lora_product {
    struct node *node;
    struct value *weight; /* the constant that holds W, its transpose, or codes of either */
    bool plain, turned;   /* weight is W, all of it; its transpose */
    const char *module;   /* as torch names it: "model.layers.0.self_attn.q_proj" */
    int64_t rows, columns;
};
struct lora_products {
    VEC(struct lora_product) list;
};

/* products.c: all of a typed graph, in its order. Those with one module have one weight: another with the same name gets a number. */
struct lora_products lora_products_find(struct graph *);
/* Those that globs name, by node, label or weight. NULL: all but those that make an output of the graph, as a head does. A glob that names
 * nothing is a failure that names the nearest. */
struct lora_products lora_products_named(struct graph *, const struct lora_products *, const char *globs);

/* ---- attach.c ---- */
#define LORA_A ".lora_A.weight" /* how the names of both end, behind the module's */
#define LORA_B ".lora_B.weight"
/* What x A is multiplied by: a number; or, by rows of the batch, f32[any, rank]: of row i of the batch, row number row[i] of the table. */
struct lora_factor {
    double number;
    struct value *table, *row; /* NULL: the number */
};
/* Adds (x a) b factor to the product's result. a: f32[rows, rank], b: f32[rank, columns]; of a rank's graph, its shards. Returns the node
 * of x a. */
struct node *lora_attach(struct graph *, const struct lora_product *, struct value *a, struct value *b, const struct lora_factor *);

/* initial.c: what A begins as: drawn evenly from -1/sqrt(rows) to 1/sqrt(rows), as PEFT does (kaiming_uniform_ of torch with a = sqrt(5)).
 * The name of A and the seed tell the numbers. to: [rows, rank] */
void lora_initial(const char *name, uint64_t seed, int64_t rows, int64_t rank, float *to);

#endif
