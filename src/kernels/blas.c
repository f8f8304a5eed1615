/* Which BLAS this is. */
#include <cblas.h>

#include "kernels/kernels.h"

const char *sp_blas_version(void) { return openblas_get_config(); }
