/* Errors: every function that can fail returns an sp_err and must be looked
 * at; the text of what went wrong waits in sp_last_error(). */
#ifndef SPRAT_BASE_H
#define SPRAT_BASE_H

#define SP_VERSION "0.1.0"

#if defined(__GNUC__)
#define SP_MUST __attribute__((warn_unused_result))
#define SP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SP_MUST
#define SP_PRINTF(fmt, args)
#endif

/* Every error the library can return, with its text, in one place. */
#define SP_ERRORS(X)                                    \
    X(SP_OK, "success")                                 \
    X(SP_ENOMEM, "out of memory")                       \
    X(SP_ESHAPE, "shapes do not fit")                   \
    X(SP_EARG, "value out of range")                    \
    X(SP_EIO, "file cannot be read or written")         \
    X(SP_EFORMAT, "file is damaged or of another kind") \
    X(SP_ECONFIG, "configuration is not valid")         \
    X(SP_EDATA, "data set is not valid")                \
    X(SP_ENUMERIC, "a value is not finite")             \
    X(SP_ESTOPPED, "stopped on request")                \
    X(SP_EPEER, "another rank failed, is missing or differs")

typedef enum sp_err {
#define X(code, text) code,
    SP_ERRORS(X)
#undef X
} sp_err;

/* Hand a failed call's error to the caller. The only control-flow macro. */
#define SP_TRY(call)           \
    do {                       \
        sp_err sp_e_ = (call); \
        if (sp_e_ != SP_OK)    \
            return sp_e_;      \
    } while (0)

/* The general text of an error code; never NULL. */
const char *sp_strerror(sp_err e);

/* Record what went wrong, for sp_last_error(); returns `e`. The text names the
 * object, the value and the remedy; it may quote sp_last_error().
 * Thread-local. */
sp_err sp_fail(sp_err e, const char *fmt, ...) SP_PRINTF(2, 3);

/* The text of this thread's last sp_fail(); "" if there was none. Valid until
 * the next sp_fail() of this thread. */
const char *sp_last_error(void);

#endif
