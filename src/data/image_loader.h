/* The loader for images, behind the interface of data/loader.h, whose comments
 * are those of these functions. */
#ifndef SPRAT_DATA_IMAGE_LOADER_H
#define SPRAT_DATA_IMAGE_LOADER_H

#include "data/loader.h"

typedef struct sp_image_loader sp_image_loader;

/* The ranks of `opt` are in range. */
SP_MUST sp_err sp_image_loader_new(sp_image_loader **out,
                                   const sp_loader_opt *opt);
void sp_image_loader_free(sp_image_loader *l);
size_t sp_image_loader_batches(const sp_image_loader *l);
size_t sp_image_loader_capacity(const sp_image_loader *l);
void sp_image_loader_seek(sp_image_loader *l, int epoch, size_t index);
SP_MUST sp_err sp_image_loader_next(sp_image_loader *l, sp_batch *batch);

#endif
