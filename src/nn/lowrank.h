/* What layers of low rank share while they are recorded. */
#ifndef SP_LOWRANK_H
#define SP_LOWRANK_H

#include "sprat/graph.h"

enum { SP_PART_NAME = 256 };

/* What a part of a layer is called, or of its parameters: NAME and what comes
 * behind it, "_u", in `text`, which is returned. SP_EARG sticks to the graph
 * when that is too long. */
const char *sp_name_with(sp_graph *g, const char *name, const char *behind,
                         char text[SP_PART_NAME]);

#endif
