/* What an opened data set is, in a few lines that are equal where the data
 * are: for the ranks of a job to compare.
 *
 * Every label and token counts, and every image, unless a set of images says
 * cheaper what tells its files from others (sp_data_set.fingerprint), or has
 * more than SP_FINGERPRINT_BYTES; then of each split SP_FINGERPRINT_IMAGES
 * images and labels, evenly spread, its first and last among them.
 */
#ifndef SPRAT_DATA_FINGERPRINT_H
#define SPRAT_DATA_FINGERPRINT_H

#include "base/text.h"
#include "data/dataset.h"

enum { SP_FINGERPRINT_BYTES = 1 << 30, SP_FINGERPRINT_IMAGES = 4096 };

/* Append the lines to `out`. Errors: those of reading; SP_ENOMEM. */
SP_MUST sp_err sp_dataset_fingerprint(const sp_dataset *d, sp_text *out);

#endif
