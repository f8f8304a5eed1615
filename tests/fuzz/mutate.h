/* What libFuzzer offers a target that changes inputs in its own way, and calls
 * in it. */
#ifndef SP_FUZZ_MUTATE_H
#define SP_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Change `size` bytes in place, to at most `most`; gives their new number. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most,
                               unsigned seed);

#endif
