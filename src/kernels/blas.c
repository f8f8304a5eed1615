/* What of BLAS is beyond its standard. */
#include <cblas.h>
#include <pthread.h>

#include "kernels/conv.h"

const char *sp_blas_version(void) { return openblas_get_config(); }

/* OpenBLAS frees buffers in that call, without a lock of its own. */
void sp_blas_alone(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    openblas_set_num_threads(1);
    pthread_mutex_unlock(&lock);
}
