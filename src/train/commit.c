/* Which source this library was built from. */
#include "sprat/train.h"
#include "sprat_commit.h" /* made by Meson */

const char *sp_commit(void) { return SP_COMMIT; }
