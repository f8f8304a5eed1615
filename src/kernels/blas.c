/* What of BLAS is beyond its standard. */
#include <cblas.h>

#include "kernels/conv.h"

const char *sp_blas_version(void) { return openblas_get_config(); }

void sp_blas_alone(void) { openblas_set_num_threads(1); }
