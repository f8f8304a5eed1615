/* The loops behind gates.h, compiled once per instruction set (gate_loops.c).
 * Units come in whole vectors, so that each unit's bits are the same
 * wherever in a row it stands. */
#ifndef SP_KERNELS_GATE_LOOPS_H
#define SP_KERNELS_GATE_LOOPS_H

#include "kernels/gates.h"

typedef struct sp_gate_loops {
    void (*lstm)(const sp_lstm_row *a);
    void (*lstm_back)(const sp_lstm_back *a);
    void (*gru)(const sp_gru_row *a);
    void (*gru_back)(const sp_gru_back *a);
} sp_gate_loops;

#endif
