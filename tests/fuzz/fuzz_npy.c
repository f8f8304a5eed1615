/* The header of a .npy file: what is read, written and read again is the
 * same. */
#include <string.h>

#include "convert/npy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t n = size < SP_NPY_HEADER ? size : SP_NPY_HEADER;
    sp_npy a, b;
    sp_text out = { 0 };

    if (sp_npy_read(&a, "input", "array", bytes, n) != SP_OK)
        return 0;
    fuzz_law(a.data <= n, "the numbers begin behind the header");
    sp_npy_write(&out, a.type->numpy, a.dims, a.ndim);
    fuzz_law(sp_npy_read(&b, "input", "array", (const uint8_t *)out.bytes,
                         out.size) == SP_OK,
             "what was read can be written");
    fuzz_law(a.type == b.type && a.ndim == b.ndim &&
                 memcmp(a.dims, b.dims, (size_t)a.ndim * sizeof *a.dims) == 0,
             "and is the same");
    sp_text_free(&out);
    return 0;
}
