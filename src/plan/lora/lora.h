/* lora: low-rank adapters (Hu et al. 2021): a product of x with a weight W of r rows and c columns becomes x W + (x A) B f, where A has few
 * columns, B as many rows, and f is a number. Adapters are ordinary nodes, so they have placements, prices and gradients like any
 * product. */
#ifndef TPC_LORA_H
#define TPC_LORA_H

#include "plan/plan.h"

enum { LORA_RANK = 1 << 16 }; /* largest rank of an adapter */

/* A MatMul, Gemm or few-bit product of floats with constants that can have an adapter. */
struct lora_product {
    struct node *node;
    struct value *weight; /* the constant that holds W, its transpose, or codes of either */
    bool plain, turned;   /* weight is exactly W; its transpose */
    const char *module;   /* torch's name: "model.layers.0.self_attn.q_proj" */
    int64_t rows, columns;
};
struct lora_products {
    VEC(struct lora_product) list;
};

/* products.c: all such products of a typed graph, in its order. Products of one module share one weight: another with the same name gets a
 * number. */
struct lora_products lora_products_find(struct graph *);
/* The products that globs match by node, label or weight. NULL: all except those that make a graph output, as a head does. A glob without a
 * match fails with the nearest name. */
struct lora_products lora_products_named(struct graph *, const struct lora_products *, const char *globs);

/* ---- attach.c ---- */
#define LORA_A ".lora_A.weight" /* suffixes of both names, after the module's */
#define LORA_B ".lora_B.weight"
/* The factor of x A: a number; or by rows of the batch, f32[any, rank]: row row[i] of the table for row i of the batch. */
struct lora_factor {
    double number;
    struct value *table, *row; /* NULL: use the number */
};
/* Adds (x a) b factor to the product's result. a: f32[rows, rank], b: f32[rank, columns], in a rank's graph their shards. Returns the node
 * of x a. */
struct node *lora_attach(struct graph *, const struct lora_product *, struct value *a, struct value *b, const struct lora_factor *);

/* initial.c: initial values of A: uniform in [-1/sqrt(rows), 1/sqrt(rows)], as in PEFT (kaiming_uniform_ of torch with a = sqrt(5)). The
 * name of A and the seed determine the numbers. to: [rows, rank] */
void lora_initial(const char *name, uint64_t seed, int64_t rows, int64_t rank, float *to);

#endif
