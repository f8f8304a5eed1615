/* What layers of low rank share while they are recorded. */
#include "nn/lowrank.h"

#include <stdio.h>

const char *sp_name_with(sp_graph *g, const char *name, const char *behind,
                         char text[SP_PART_NAME])
{
    int size = snprintf(text, SP_PART_NAME, "%s%s", name, behind);

    if (size < 0 || size >= SP_PART_NAME)
        sp_graph_fail(g, SP_EARG, "name '%s%s' is longer than %d bytes", name,
                      behind, SP_PART_NAME - 1);
    return text;
}
