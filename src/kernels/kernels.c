/* The tables of all instruction sets, and the choice among them. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/table.h"

static bool has_base(void) { return true; }

#if defined(__x86_64__)
extern const sp_tiles sp_tiles_avx512, sp_tiles_avx2;
extern const sp_products sp_products_avx512, sp_products_avx2;
extern const sp_row_loops sp_row_loops_avx512, sp_row_loops_avx2;
extern const sp_gate_loops sp_gate_loops_avx512, sp_gate_loops_avx2;
extern const sp_windows sp_windows_avx512, sp_windows_avx2;
extern const sp_winograd_loops sp_winograd_loops_avx512, sp_winograd_loops_avx2;

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#elif defined(__aarch64__)
extern const sp_tiles sp_tiles_neon;
extern const sp_products sp_products_neon;
extern const sp_row_loops sp_row_loops_neon;
extern const sp_gate_loops sp_gate_loops_neon;
extern const sp_windows sp_windows_neon;
extern const sp_winograd_loops sp_winograd_loops_neon;

/* The compiler takes it for granted, too. */
static bool has_neon(void) { return true; }
#endif
extern const sp_tiles sp_tiles_base;
extern const sp_products sp_products_base;
extern const sp_row_loops sp_row_loops_base;
extern const sp_gate_loops sp_gate_loops_base;
extern const sp_windows sp_windows_base;
extern const sp_winograd_loops sp_winograd_loops_base;

/* The best first. */
static const sp_kernels tables[] = {
#if defined(__x86_64__)
    { .isa = "avx512",
      .available = has_avx512,
      .tiles = &sp_tiles_avx512,
      .products = &sp_products_avx512,
      .rows = &sp_row_loops_avx512,
      .gates = &sp_gate_loops_avx512,
      .windows = &sp_windows_avx512,
      .winograd = &sp_winograd_loops_avx512 },
    { .isa = "avx2",
      .available = has_avx2,
      .tiles = &sp_tiles_avx2,
      .products = &sp_products_avx2,
      .rows = &sp_row_loops_avx2,
      .gates = &sp_gate_loops_avx2,
      .windows = &sp_windows_avx2,
      .winograd = &sp_winograd_loops_avx2 },
#elif defined(__aarch64__)
    { .isa = "neon",
      .available = has_neon,
      .tiles = &sp_tiles_neon,
      .products = &sp_products_neon,
      .rows = &sp_row_loops_neon,
      .gates = &sp_gate_loops_neon,
      .windows = &sp_windows_neon,
      .winograd = &sp_winograd_loops_neon },
#endif
    { .isa = "base",
      .available = has_base,
      .tiles = &sp_tiles_base,
      .products = &sp_products_base,
      .rows = &sp_row_loops_base,
      .gates = &sp_gate_loops_base,
      .windows = &sp_windows_base,
      .winograd = &sp_winograd_loops_base },
};

const sp_kernels *sp_kernels_at(int i)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        if (tables[t].available() && i-- == 0)
            return &tables[t];
    return NULL;
}

const sp_kernels *sp_kernels_find(const char *isa)
{
    const sp_kernels *k = sp_kernels_at(0);

    if (!isa || !strcmp(isa, "auto"))
        return k;
    for (int i = 0; (k = sp_kernels_at(i)); i++)
        if (!strcmp(k->isa, isa))
            return k;
    return NULL;
}

const char *sp_kernels_isa(const sp_kernels *k) { return k->isa; }
