/* The loader for text, behind the interface of data/loader.h, whose comments
 * are those of these functions. */
#ifndef SPRAT_DATA_TEXT_LOADER_H
#define SPRAT_DATA_TEXT_LOADER_H

#include "data/loader.h"

typedef struct sp_text_loader sp_text_loader;

/* The ranks of `opt` are in range. */
SP_MUST sp_err sp_text_loader_new(sp_text_loader **out,
                                  const sp_loader_opt *opt);
void sp_text_loader_free(sp_text_loader *l);
size_t sp_text_loader_batches(const sp_text_loader *l);
size_t sp_text_loader_capacity(const sp_text_loader *l);
void sp_text_loader_seek(sp_text_loader *l, int epoch, size_t index);
void sp_text_loader_next(sp_text_loader *l, sp_batch *batch);

#endif
