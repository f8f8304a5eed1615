/* What the running program is made of. A version and a commit do not tell two
 * builds from one another that were made of changed sources, or by different
 * compilers; their bytes do. */
#define _GNU_SOURCE
#include "train/program.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <sys/auxv.h>

#include "base/files.h"
#include "sprat/train.h"

static sp_err add_file(const char *what, const char *path, sp_text *out)
{
    char hex[SP_HASH_HEX];
    uint64_t size;

    SP_TRY(sp_file_hash(path, hex, &size));
    sp_text_add(out, "the %s's file, %" PRIu64 " bytes, SHA-256 %s\n", what,
                size, hex);
    return SP_OK;
}

sp_err sp_program_tell(sp_text *out)
{
    static const char here = 0;
    Dl_info program, own;

    sp_text_add(out, "version %s, commit %s\n", SP_VERSION, sp_commit());
    SP_TRY(add_file("program", "/proc/self/exe", out));
    /* A program that is linked with the library has this code within. */
    if (!dladdr((const void *)getauxval(AT_ENTRY), &program) ||
        !dladdr(&here, &own) || program.dli_fbase == own.dli_fbase)
        return SP_OK;
    return add_file("library", own.dli_fname, out);
}
