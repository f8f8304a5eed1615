#include "sprat/compress.h"

sp_err sp_compressor_check(const sp_compressor *c, const void *own,
                           const sp_compress_use *use)
{
    return c->check ? c->check(own, use) : SP_OK;
}
