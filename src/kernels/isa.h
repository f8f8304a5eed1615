/* What sources that are compiled once per instruction set have in common. */
#ifndef SP_KERNELS_ISA_H
#define SP_KERNELS_ISA_H

#define SP_JOIN_(a, b) a##_##b
#define SP_JOIN(a, b) SP_JOIN_(a, b)

/* The name of an exported thing, for this instruction set: sp_tiles_avx2. */
#define SP_FOR_ISA(name) SP_JOIN(name, SP_ISA)

/* One register of floats; loads and stores need only a float's alignment. */
typedef float sp_vec
    __attribute__((vector_size(SP_VL * 4), aligned(4), may_alias));

#endif
