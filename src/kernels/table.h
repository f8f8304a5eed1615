/* What stands behind sp_kernels: the functions of one instruction set.
 *
 * A source that is compiled once per instruction set (the list in meson.build)
 * is told SP_ISA, its name, and SP_VL, the floats in one vector register, and
 * exports one table of function pointers, e.g. sp_tiles_avx512. To add such a
 * source: its name in meson.build, its pointer here, its line in kernels.c. */
#ifndef SP_KERNELS_TABLE_H
#define SP_KERNELS_TABLE_H

#include "kernels/gate_loops.h"
#include "kernels/kernels.h"
#include "kernels/product.h"
#include "kernels/rows.h"
#include "kernels/tiles.h"
#include "kernels/windows.h"
#include "kernels/winograd.h"

struct sp_kernels {
    const char *isa;
    bool (*available)(void);           /* on this CPU */
    const sp_tiles *tiles;             /* tiles.c */
    const sp_products *products;       /* product.c */
    const sp_row_loops *rows;          /* rows.c */
    const sp_gate_loops *gates;        /* gate_loops.c */
    const sp_windows *windows;         /* windows.c */
    const sp_winograd_loops *winograd; /* winograd.c */
};

#endif
