/* The `data` section of a configuration. */
#ifndef SPRAT_DATA_SECTION_H
#define SPRAT_DATA_SECTION_H

#include "sprat/data.h"

extern const sp_section sp_data_section;

#endif
