/* No compression: all gradients travel dense, as they are. */
#include "sprat/compress.h"

static bool accepts(const sp_slot *s)
{
    (void)s;
    return false;
}

const sp_compressor sp_compressor_none = {
    .entry = { .name = "none", .help = "gradients travel as they are" },
    .accepts = accepts,
};
