/* Refusing to run where this build would do something else than asked. */
#ifndef SP_TRAIN_LAUNCHER_H
#define SP_TRAIN_LAUNCHER_H

#include "sprat/base.h"

/* Errors: SP_EARG when a launcher started this process as one of several
 * ranks: each would train the whole job by itself. */
SP_MUST sp_err sp_launcher_check(void);

#endif
