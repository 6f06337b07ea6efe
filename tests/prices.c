/* Prints schemas/prices.def for tests/prices.py: of each row what it is, its key, unit, value in the reference profile, and sentence; and
 * the version of the list. */
#include <stdio.h>

#define LIST_VERSION(number) printf("version\t\t\t%d\t\n", number);
#define ABOUT(key, type, says) printf("about\t%s\t%s\t\t%s\n", #key, type, says);
#define CONSTANT(key, unit, reference, says) printf("constant\t%s\t%s\t%s\t%s\n", #key, #unit, #reference, says);
#define LINK(key, unit, reference, member, says) printf("link\t%s\t%s\t%s\t%s\n", #key, #unit, #reference, says);
#define LEVEL(key, unit, member, says) printf("level\t%s\t%s\t\t%s\n", #key, #unit, says);
#define PRICE(key, unit, reference, by, says) printf("price\t%s\t%s\t%s\t%s\n", #key, #unit, #reference, says);
#define SHARED(key, unit, reference, by, says) \
    PRICE(key, unit, reference, by, says)      \
    printf("together\tmachine_%s\t%s\t%s\t%s\n", #key, #unit, #reference, #key);

int main(void)
{
#include "schemas/prices.def"
    return 0;
}
