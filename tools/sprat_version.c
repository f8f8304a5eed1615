/* sprat version: what this build is made of and what it runs on. */
#include <png.h>
#include <stdio.h>
#include <yaml.h>
#include <zlib.h>

#include "kernels/kernels.h"
#include "sprat.h"
#include "sprat/dist.h"
#include "sprat/train.h"

static int version(const sp_args *a)
{
    const sp_kernels *k;
    char mpi[80];

    (void)a;
    printf("sprat %s\n", SP_VERSION);
#ifdef __clang__
    printf("compiler: clang %s\n", __clang_version__);
#else
    printf("compiler: gcc %s\n", __VERSION__);
#endif
    printf("BLAS: %s\n", sp_blas_version());
    printf("libpng: %s\n", png_get_libpng_ver(NULL));
    printf("zlib: %s\n", zlibVersion());
    printf("libyaml: %s\n", yaml_get_version_string());
    printf("instruction sets:");
    for (int i = 0; (k = sp_kernels_at(i)); i++)
        printf(" %s", sp_kernels_isa(k));
    printf("\nthreads: %d\n", sp_threads_available());
    printf("MPI: %s\n", sp_mpi_version(mpi, sizeof mpi));
    return SP_EXIT_DONE;
}

const sp_verb sp_verb_version = {
    .name = "version",
    .words = "",
    .help = "tell what this build is made of and runs on",
    .examples = "  sprat version\n",
    .run = version,
};
