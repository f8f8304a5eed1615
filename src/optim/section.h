/* The configuration sections of this folder: "optim" and "schedule". */
#ifndef SP_OPTIM_SECTION_H
#define SP_OPTIM_SECTION_H

#include "sprat/config.h"

extern const sp_section sp_optim_section;    /* fills an sp_optim_cfg */
extern const sp_section sp_schedule_section; /* fills an sp_schedule_cfg */

#endif
