/* The running program, for ranks that compare theirs. */
#ifndef SP_TRAIN_PROGRAM_H
#define SP_TRAIN_PROGRAM_H

#include "base/text.h"

/* Add lines that are the same for the same version, the same bytes of the
 * program's file and, where Sprat is a shared library of it, of that. Errors:
 * SP_EIO. */
SP_MUST sp_err sp_program_tell(sp_text *out);

#endif
