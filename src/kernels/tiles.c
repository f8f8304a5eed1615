/* The inner loops of convolutions and matrix products; compiled once for each
 * instruction set. */
#include "kernels/tiles.h"

#include "kernels/isa.h"

/* Enough independent sums to hide the latency of a multiply-add. */
enum { PEAK_SUMS = 12 };

static float peak(size_t turns)
{
    sp_vec sum[PEAK_SUMS] = { { 0 } }, a = { 0 }, b = { 0 };
    float total = 0;

    a += 0.999f;
    b += 0.001f;
    for (size_t i = 0; i < turns; i++)
        for (int j = 0; j < PEAK_SUMS; j++)
            sum[j] = sum[j] * a + b;
    for (int j = 0; j < PEAK_SUMS; j++)
        total += sum[j][0];
    return total;
}

extern const sp_tiles SP_FOR_ISA(sp_tiles);

const sp_tiles SP_FOR_ISA(sp_tiles) = {
    .vl = SP_VL,
    .peak = peak,
    .peak_flops = PEAK_SUMS * SP_VL * 2,
};
