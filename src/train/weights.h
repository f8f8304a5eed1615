/* Parameters and buffers in safetensors files, by name. */
#ifndef SP_TRAIN_WEIGHTS_H
#define SP_TRAIN_WEIGHTS_H

#include "base/safetensors.h"
#include "optim/optim.h"
#include "sprat/graph.h"

/* Write all values: parameters and buffers, in recording order. The file
 * depends on nothing else. `stamp` may be NULL. */
SP_MUST sp_err sp_weights_save(const char *path, const sp_params *p,
                               sp_st_stamp *stamp);

/* Read them all. Counters that PyTorch keeps beside its batch norms
 * (num_batches_tracked) are passed over; otherwise the file must hold exactly
 * these tensors. Errors: SP_EIO, SP_EFORMAT naming every tensor that is
 * missing, extra or of another shape. */
SP_MUST sp_err sp_weights_load(const char *path, sp_params *p);

/* See whether they could be read, from the file's header alone. */
SP_MUST sp_err sp_weights_check(const char *path, const sp_params *p);

/* Read weights to start from, `model.init`, into a program of full rank or
 * `low` one. Errors: as sp_weights_load(); of factors, it says how a program
 * has them. */
SP_MUST sp_err sp_weights_init(const char *path, sp_params *p, bool low);

/* Write and read an optimizer's state, as NAME.momentum_buffer and so on. */
SP_MUST sp_err sp_optim_save(const char *path, const sp_params *p,
                             const sp_optim *o, sp_st_stamp *stamp);
SP_MUST sp_err sp_optim_load(const char *path, const sp_params *p, sp_optim *o);

#endif
