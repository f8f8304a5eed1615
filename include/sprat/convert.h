/* Weights for other programs, and from them. */
#ifndef SPRAT_CONVERT_H
#define SPRAT_CONVERT_H

#include <stddef.h>

#include "sprat/config.h"

/* What weights can be written as. */
typedef enum sp_export_form {
    SP_EXPORT_BY_NAME,     /* as the file's name ends */
    SP_EXPORT_SAFETENSORS, /* what PyTorch's load_state_dict(strict=True) takes
                              of the same network: its names and axis order,
                              counters of batch norms too */
    SP_EXPORT_NPZ,         /* the same arrays, for numpy.load() */
    SP_EXPORT_ONNX         /* the network itself, for images, opset 13: input
                              "image" {N,c,h,w}, normalised as data.normalize
                              says; output "logits" {N,classes} */
} sp_export_form;

typedef struct sp_export_opt {
    const char *run, *checkpoint; /* checkpoint NULL: the best */
    const char *file;
    sp_export_form form;
} sp_export_opt;

/* The names of forms, in the enum's order from SP_EXPORT_SAFETENSORS on, which
 * is 0 here: "safetensors", "npz", "onnx"; NULL past the last. */
const char *sp_export_form_name(size_t i);

/* Write the weights of a checkpoint to a file, whole or not at all. The file
 * holds no time, path or host. What it belongs to (model.*, data.normalize as
 * mean and std, names of classes) stands in the metadata of safetensors and
 * ONNX.
 * Not collective: one process does it.
 * Errors: SP_EARG for a name whose ending is unknown, a file in the place of
 * what a run made, an operator that ONNX is
 * not known to have, or an ONNX model above 2 GiB; those of reading the run;
 * SP_EIO; SP_ENOMEM. */
SP_MUST sp_err sp_export(const sp_registry *r, const sp_export_opt *o);

/* What to import. */
typedef struct sp_import_opt {
    const char *file;   /* safetensors; .npz; .pth, as torch.save() writes a
                           state dict, from PyTorch 1.6 on */
    const char *except; /* layers or parameters that start anew, as
                           sp_layer_listed() has them, "fc"; NULL: none */
    const char *out;    /* for model.init: a safetensors file */
} sp_import_opt;

/* What was imported. */
typedef struct sp_import_result {
    int imported, anew; /* parameters and buffers */
    int folded;         /* biases before a batch norm, which took them in */
} sp_import_result;

/* Fill the configured network, at full rank, with another program's weights,
 * and write them as a file for `model.init`. Names are PyTorch's; "module."
 * and the like before all of them are passed over, as are counters of batch
 * norms; torchvision's numbers of VGG's last layers become those here. No data
 * are opened. Nothing in the file is run. Not collective.
 * Errors: SP_EFORMAT with every name that is missing, left over or of another
 * shape, and the nearest ones; or for a damaged file; SP_ENUMERIC for weights
 * that are not finite; SP_EARG for a name in `except` that neither has,
 * or an `out` that is named as a file of another kind; SP_ECONFIG; SP_EIO;
 * SP_ENOMEM. */
SP_MUST sp_err sp_import(const sp_config *c, const sp_import_opt *o,
                         sp_import_result *out);

#endif
