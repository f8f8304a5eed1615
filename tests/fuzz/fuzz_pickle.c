/* The pickle in what torch.save() writes: a program, of which only what lists
 * tensors is run. */
#include "convert/pickle.h"
#include "fuzz.h"

static bool is_empty(const sp_pickled *t)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->dims[d] == 0)
            return true;
    return false;
}

static void check_tensor(const sp_pickled *t)
{
    int64_t last = t->offset;

    for (int d = 0; d < t->ndim; d++)
        fuzz_law(t->dims[d] >= 0 && t->strides[d] >= 0,
                 "sizes are not negative");
    if (is_empty(t))
        return; /* its other sizes may be anything */
    for (int d = 0; d < t->ndim; d++)
        last += (t->dims[d] - 1) * t->strides[d];
    fuzz_law(t->offset >= 0 && last < t->numbers,
             "a tensor lies within its storage");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sp_arena arena = { 0 };
    sp_pickled *tensors;
    size_t count;

    if (sp_pickle_read("input", bytes, size, &arena, &tensors, &count) == SP_OK)
        for (size_t i = 0; i < count; i++)
            check_tensor(&tensors[i]);
    sp_arena_free(&arena);
    return 0;
}
