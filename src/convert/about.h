/* What weights belong to, as pairs of texts for a file's metadata. */
#ifndef SP_CONVERT_ABOUT_H
#define SP_CONVERT_ABOUT_H

#include "base/arena.h"
#include "base/safetensors.h"
#include "train/trained.h"

enum { SP_ABOUT_MOST = 64 };

typedef struct sp_about {
    sp_st_pair pairs[SP_ABOUT_MOST];
    size_t count;
    sp_arena arena;
} sp_about;

/* Tell of an opened checkpoint and its session:
 *   format       "pt"
 *   sprat        the version
 *   step, epoch  of training
 *   model.KEY    the settings of the model
 *   outputs      how many logits
 *   input        of images, "[3,32,32]": channels, height, width
 *   mean, std    of images, for each channel, of pixels from 0 to 1
 *   classes      names of classes or tokens, a JSON list; or left out
 * Errors: SP_EARG for more than SP_ABOUT_MOST of them; SP_ENOMEM. On success
 * sp_about_close() frees what is in *a. */
SP_MUST sp_err sp_about_open(sp_about *a, const sp_trained *t,
                             const sp_session *s);
void sp_about_close(sp_about *a);

#endif
