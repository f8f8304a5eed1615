#include "convert/npy.h"

#include <string.h>

/* The rest of a header. */
typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n'))
        c->p++;
}

/* Take what comes next, if it is this text. */
static bool take(cursor *c, const char *text)
{
    size_t n = strlen(text);

    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* Take 'text' in quotes of either kind. */
static bool take_quoted(cursor *c, char *out, size_t room)
{
    char quote;
    size_t n = 0;

    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    quote = *c->p++;
    while (c->p < c->end && *c->p != quote && n + 1 < room)
        out[n++] = *c->p++;
    out[n] = '\0';
    return take(c, (char[]){ quote, '\0' });
}

static bool take_size(cursor *c, int64_t *out)
{
    const char *start;
    int64_t x = 0;

    skip_space(c);
    for (start = c->p; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
        if (x > (INT64_MAX - 9) / 10)
            return false;
        x = 10 * x + (*c->p - '0');
    }
    *out = x;
    return c->p > start;
}

/* (), (3,) or (2, 3). */
static bool take_shape(cursor *c, sp_npy *a)
{
    if (!take(c, "("))
        return false;
    while (!take(c, ")")) {
        if (a->ndim == SP_NPY_DIMS || !take_size(c, &a->dims[a->ndim++]))
            return false;
        if (!take(c, ","))
            return a->ndim > 1 && take(c, ")");
    }
    return true;
}

static bool take_truth(cursor *c, bool *out)
{
    *out = take(c, "True");
    return *out || take(c, "False");
}

/* The dictionary; what is not said stays as it was. */
static bool take_all(cursor *c, sp_npy *a, char *descr, size_t room)
{
    char key[16];
    unsigned seen = 0;

    if (!take(c, "{"))
        return false;
    while (!take(c, "}")) {
        if (!take_quoted(c, key, sizeof key) || !take(c, ":"))
            return false;
        if (strcmp(key, "descr") == 0 && take_quoted(c, descr, room))
            seen |= 1;
        else if (strcmp(key, "fortran_order") == 0 &&
                 take_truth(c, &a->fortran))
            seen |= 2;
        else if (strcmp(key, "shape") == 0 && !(seen & 4) && take_shape(c, a))
            seen |= 4;
        else
            return false;
        take(c, ",");
    }
    return seen == 7;
}

static sp_err refuse(const char *path, const char *name, const char *what)
{
    return sp_fail(SP_EFORMAT, "%s: %.100s: %s", path, name, what);
}

sp_err sp_npy_read(sp_npy *a, const char *path, const char *name,
                   const uint8_t *bytes, size_t size)
{
    static const uint8_t magic[] = "\x93NUMPY";
    char descr[32] = "";
    size_t head = 10, n;
    cursor c;

    *a = (sp_npy){ 0 };
    if (size < 12 || memcmp(bytes, magic, 6) != 0)
        return refuse(path, name, "is not an array of NumPy");
    if (bytes[6] < 1 || bytes[6] > 3)
        return refuse(path, name,
                      "has another version of NumPy's format than 1 to 3");
    n = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) { /* 4 bytes */
        n |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        head = 12;
    }
    if (n > SP_NPY_HEADER - head || n > size - head)
        return refuse(path, name, "its header is cut off, or too long");
    a->data = head + n;
    c = (cursor){ (const char *)bytes + head, (const char *)bytes + a->data };
    if (!take_all(&c, a, descr, sizeof descr))
        return refuse(path, name,
                      "its header is not that of a plain array of numbers");
    a->type = sp_numeric_numpy(descr);
    if (a->type)
        return SP_OK;
    return sp_fail(SP_EFORMAT,
                   "%s: %.100s: its numbers are of kind %s; convert them to "
                   "float32, little endian",
                   path, name, descr);
}

void sp_npy_write(sp_text *out, const char *descr, const int64_t *dims,
                  int ndim)
{
    enum { HEAD = 10, ALIGN = 64 };
    sp_text dict = { 0 };
    size_t n;
    uint8_t length[2];

    sp_text_add(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                descr);
    for (int i = 0; i < ndim; i++)
        sp_text_add(&dict, "%s%lld", i ? ", " : "", (long long)dims[i]);
    sp_text_add(&dict, ndim == 1 ? ",), }" : "), }");
    while ((HEAD + dict.size + 1) % ALIGN != 0 && !dict.failed)
        sp_text_put(&dict, " ", 1);
    sp_text_put(&dict, "\n", 1);
    n = dict.size;
    length[0] = (uint8_t)n;
    length[1] = (uint8_t)(n >> 8);
    sp_text_put(out, "\x93NUMPY\1", 8); /* with the 0 behind: version 1.0 */
    sp_text_put(out, length, sizeof length);
    sp_text_put(out, sp_text_string(&dict), n);
    out->failed = out->failed || dict.failed;
    sp_text_free(&dict);
}
