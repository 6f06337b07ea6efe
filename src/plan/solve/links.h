/* links: how variables of the choice hang together through the values. Internal to choose.c and edge_tables.c. */
#ifndef TPC_LINKS_H
#define TPC_LINKS_H

#include "plan/space/space.h"

struct ends {
    int var;
    int n;
    struct placement *at;
}; /* a variable and the placement each of its values means for a value */
struct encoding {
    struct space *s;
    struct arena *arena;
    struct problem *p;
    int *node_var;              /* by node position */
    struct ends *source, *sink; /* by value id: inputs, constants; by output number */
    struct ends *pin;           /* by value id: what wishes leave of where it is brought before it is read; .at NULL: no wishes */
    int *value_var;             /* by value id, -1 none */
    VEC(int) whole; /* by variable: its value in the plan in which every rank does everything; 0 where constraints rule it out */
    bool complete;  /* no subset was left out */
};

/* A new variable of n values. */
int links_variable(struct encoding *, int n, int whole);
/* Adds a placement unless it is there. */
void ends_add(struct ends *, struct placement);
/* How the producer of a value, or its end of the graph, leaves it. */
struct ends ends_made(struct encoding *, const struct value *);
/* The tables between a value's producer and its readers. */
void links_make(struct encoding *, const struct value *);

#endif
