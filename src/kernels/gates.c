#include "kernels/gates.h"

#include "kernels/table.h"

void sp_lstm_row_forward(const sp_kernels *k, const sp_lstm_row *a)
{
    k->gates->lstm(a);
}

void sp_lstm_row_backward(const sp_kernels *k, const sp_lstm_back *a)
{
    k->gates->lstm_back(a);
}

void sp_gru_row_forward(const sp_kernels *k, const sp_gru_row *a)
{
    k->gates->gru(a);
}

void sp_gru_row_backward(const sp_kernels *k, const sp_gru_back *a)
{
    k->gates->gru_back(a);
}
