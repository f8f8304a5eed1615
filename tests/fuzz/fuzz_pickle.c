/* The pickle in what torch.save() writes: a program, of which only what lists
 * tensors is run. */
#include "convert/pickle.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sp_arena arena = { 0 };
    sp_pickled *tensors;
    size_t count;

    if (sp_pickle_read("input", bytes, size, &arena, &tensors, &count) ==
        SP_OK) {
        for (size_t i = 0; i < count; i++) {
            const sp_pickled *t = &tensors[i];
            int64_t last = t->offset, elements = 1;

            for (int d = 0; d < t->ndim; d++) {
                fuzz_law(t->dims[d] >= 0 && t->strides[d] >= 0,
                         "sizes are not negative");
                elements *= t->dims[d] > 0;
                last += t->dims[d] > 0 ? (t->dims[d] - 1) * t->strides[d] : 0;
            }
            fuzz_law(elements == 0 || (t->offset >= 0 && last < t->numbers),
                     "a tensor lies within its storage");
        }
    }
    sp_arena_free(&arena);
    return 0;
}
