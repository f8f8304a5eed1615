/* Memory for arrays. */

/* For madvise(), which POSIX lacks. */
#define _DEFAULT_SOURCE

#include <stdlib.h>
#include <sys/mman.h>

#include "kernels/kernels.h"

/* From here on pages of 2 MiB pay: fewer misses when walking long arrays. */
enum { HUGE_PAGE = 1 << 21 };

void *sp_block_alloc(size_t size)
{
    size_t align = size >= HUGE_PAGE ? HUGE_PAGE : SP_ALIGN;
    void *p;

    if (posix_memalign(&p, align, size + SP_ALIGN) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (align == HUGE_PAGE)
        madvise(p, size, MADV_HUGEPAGE); /* advice: failing is harmless */
#endif
    return p;
}
