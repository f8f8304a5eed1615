/* Kinds of number that arrays of other programs consist of. */
#ifndef SP_CONVERT_NUMERIC_H
#define SP_CONVERT_NUMERIC_H

#include <stddef.h>
#include <stdint.h>

/* One kind, little endian. */
typedef struct sp_numeric {
    const char *numpy;   /* its `descr` in a .npy file, "<f2"; NULL: none */
    const char *storage; /* its class in PyTorch, torch.HalfStorage */
    size_t bytes;
    float (*get)(const uint8_t *bytes); /* one of them, rounded */
} sp_numeric;

/* The kind of that `descr`, or of that class; NULL: there is none. */
const sp_numeric *sp_numeric_numpy(const char *descr);
const sp_numeric *sp_numeric_storage(const char *name);

#endif
