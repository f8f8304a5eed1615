/* The keys that all data sets share. */
#include <stddef.h>

#include "data/augment.h"
#include "data/section.h"

#define AT(field) offsetof(sp_data_cfg, field)

static const sp_key keys[] = {
    { "root", SP_TEXT, AT(root), "", 0, 0,
      "folder of the data: as given, under $SPRAT_DATA or "
      "/usr/share/datasets; empty: the set's usual one",
      NULL },
    { "valid", SP_INT, AT(valid), "0", 0, 1e9,
      "images of the training part held out for validation; text has a file",
      NULL },
    { "augment", SP_CHOICE, AT(augment), "none", 0, 0,
      "random changes of training images: pad and cut, mirror",
      SP_AUGMENT_CHOICES },
    { "pad", SP_INT, AT(pad), "4", 0, 64,
      "pixels around the image before it is cut", NULL },
    { "pad_mode", SP_CHOICE, AT(pad_mode), "zero", 0, 0,
      "what the padding shows", SP_PAD_CHOICES },
    { "pad_raw", SP_BOOL, AT(pad_raw), "false", 0, 0,
      "pad before normalising: zeros are black pixels", NULL },
    { "normalize", SP_CHOICE, AT(normalize), "none", 0, 0,
      "mean and standard deviation: none is byte/255, half is to [-1,1]",
      SP_NORMALIZE_CHOICES },
    { "workers", SP_INT, AT(workers), "1", 1, 64,
      "threads that prepare batches of images", NULL },
};

const sp_section sp_data_section = {
    .name = "data",
    .fallback = "",
    .plural = "data sets",
    .size = sizeof(sp_data_cfg),
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
};
