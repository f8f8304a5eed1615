/* PNG images through libpng, converted to 8-bit grey or RGB.
 *
 * libpng reports errors by longjmp: everything that has to be freed hangs on
 * struct job, and only guarded() sets the place to jump to.
 */
#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/resize.h"
#include "sprat/data.h"

enum {
    MAX_SIDE = 16384,
    DEFLATE_MOST = 1032, /* bytes that one byte of deflate data can become */
    MAGIC = 12
};

struct job {
    const char *path;
    FILE *file;
    uint64_t size; /* of the file */
    png_structp png;
    png_infop info;
    char text[128];  /* of libpng's error */
    int h, w, kinds; /* kinds: channels libpng delivers, 1 to 4 */
    uint8_t *pixels;
    png_bytep *rows;
};

_Noreturn static void on_error(png_structp png, png_const_charp text)
{
    struct job *j = png_get_error_ptr(png);

    snprintf(j->text, sizeof j->text, "%s", text);
    png_longjmp(png, 1);
}

/* Warnings concern chunks that are not used; damage is an error. */
static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    struct job *j = png_get_io_ptr(png);

    if (fread(to, 1, n, j->file) != n)
        png_error(png, feof(j->file) ? "truncated: the file ends too early"
                                     : "read error");
}

static sp_err guarded(struct job *j, void (*part)(struct job *))
{
    if (setjmp(png_jmpbuf(j->png)))
        return sp_fail(SP_EDATA, "%s: damaged PNG: %s%s; replace the file",
                       j->path, strstr(j->text, "CRC") ? "bad checksum, " : "",
                       j->text);
    part(j);
    return SP_OK;
}

/* What a file is that does not start as a PNG does. */
static const char *other_format(const uint8_t *b, size_t n)
{
    static const struct {
        const char *name, *magic;
        size_t length, at;
    } formats[] = {
        { "a JPEG image", "\xff\xd8\xff", 3, 0 },
        { "a GIF image", "GIF8", 4, 0 },
        { "a WebP image", "WEBP", 4, 8 },
        { "a TIFF image", "II*\0", 4, 0 },
        { "a TIFF image", "MM\0*", 4, 0 },
        { "a HEIF or AVIF image", "ftyp", 4, 4 },
        { "a PDF document", "%PDF", 4, 0 },
        { "a zip archive", "PK\3\4", 4, 0 },
        { "a gzip file", "\x1f\x8b", 2, 0 },
        { "a BMP image", "BM", 2, 0 },
    };

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].at + formats[i].length <= n &&
            memcmp(b + formats[i].at, formats[i].magic, formats[i].length) == 0)
            return formats[i].name;
    if (n >= 2 && b[0] == 'P' && b[1] >= '1' && b[1] <= '7')
        return "a PNM image";
    return "of an unknown kind";
}

static sp_err check_magic(struct job *j)
{
    uint8_t b[MAGIC];
    size_t n = fread(b, 1, sizeof b, j->file);

    if (n == 0)
        return sp_fail(SP_EDATA, "%s: the file is empty; a PNG is expected",
                       j->path);
    if (png_sig_cmp(b, 0, n < 8 ? n : 8) != 0)
        return sp_fail(SP_EDATA,
                       "%s: the file is %s, not a PNG; convert or remove it",
                       j->path, other_format(b, n));
    rewind(j->file);
    return SP_OK;
}

static sp_err open_job(struct job *j)
{
    struct stat st;

    if (stat(j->path, &st) != 0)
        return sp_fail(SP_EDATA, "%s: cannot be opened (%s)", j->path,
                       strerror(errno));
    if (!S_ISREG(st.st_mode))
        return sp_fail(SP_EDATA, "%s: is not a file", j->path);
    j->size = (uint64_t)st.st_size;
    j->file = fopen(j->path, "rb");
    if (!j->file)
        return sp_fail(SP_EDATA, "%s: cannot be opened (%s)", j->path,
                       strerror(errno));
    SP_TRY(check_magic(j));
    j->png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, j, on_error, on_warning);
    j->info = j->png ? png_create_info_struct(j->png) : NULL;
    if (!j->info)
        return sp_fail(SP_ENOMEM, "%s: out of memory", j->path);
    return SP_OK;
}

static void close_job(struct job *j)
{
    if (j->png)
        png_destroy_read_struct(&j->png, &j->info, NULL);
    if (j->file)
        fclose(j->file);
    free(j->pixels);
    free(j->rows);
}

static void read_header(struct job *j)
{
    png_set_read_fn(j->png, j, read_bytes);
    png_set_crc_action(j->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    /* Only what makes pixels is read: no comments, colour profiles, gamma. */
    png_set_keep_unknown_chunks(j->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    /* The size is judged by us, which gives the better message. */
    png_set_user_limits(j->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(j->png, j->info);
}

/* libpng allocates its rows here. */
static void choose_form(struct job *j)
{
    png_set_expand(j->png);
    png_set_strip_16(j->png);
    png_set_interlace_handling(j->png);
    png_read_update_info(j->png, j->info);
}

/* The header, and whether it can be true: nothing big is allocated before. */
static sp_err open_header(struct job *j)
{
    uint32_t h, w;

    SP_TRY(open_job(j));
    SP_TRY(guarded(j, read_header));
    h = png_get_image_height(j->png, j->info);
    w = png_get_image_width(j->png, j->info);
    if (h > MAX_SIDE || w > MAX_SIDE)
        return sp_fail(SP_EDATA,
                       "%s: declares %u x %u pixels; at most %d x %d are "
                       "read",
                       j->path, w, h, MAX_SIDE, MAX_SIDE);
    j->h = (int)h;
    j->w = (int)w;
    SP_TRY(guarded(j, choose_form));
    j->kinds = png_get_channels(j->png, j->info);
    return SP_OK;
}

static void read_pixels(struct job *j)
{
    png_read_image(j->png, j->rows);
    png_read_end(j->png, NULL);
}

/* Fill j->pixels: h x w x kinds bytes. */
static sp_err decode(struct job *j)
{
    size_t row = png_get_rowbytes(j->png, j->info);

    /* One bit a pixel is the least a PNG can store. */
    if ((uint64_t)j->h * (uint64_t)j->w / 8 > j->size * DEFLATE_MOST)
        return sp_fail(SP_EDATA,
                       "%s: damaged PNG: declares %d x %d pixels, more than "
                       "its %llu bytes can hold; replace the file",
                       j->path, j->w, j->h, (unsigned long long)j->size);
    j->pixels = malloc(row * (size_t)j->h);
    j->rows = malloc(sizeof *j->rows * (size_t)j->h);
    if (!j->pixels || !j->rows)
        return sp_fail(SP_ENOMEM, "%s: no memory for %d x %d pixels", j->path,
                       j->w, j->h);
    for (int y = 0; y < j->h; y++)
        j->rows[y] = j->pixels + row * (size_t)y;
    return guarded(j, read_pixels);
}

static uint8_t over_black(uint8_t v, uint8_t alpha)
{
    return (uint8_t)((v * alpha + 127) / 255);
}

/* From what libpng delivers (grey, grey + alpha, RGB, RGB + alpha) to c
 * channels, within j->pixels or, when there become more, in a new block. */
static sp_err convert(struct job *j, int c)
{
    size_t n = (size_t)j->h * (size_t)j->w;
    int colours = j->kinds >= 3 ? 3 : 1;
    bool alpha = j->kinds == 2 || j->kinds == 4;
    uint8_t *out = malloc(n * (size_t)c);
    const uint8_t *from = j->pixels;

    if (!out)
        return sp_fail(SP_ENOMEM, "%s: no memory for %d x %d pixels", j->path,
                       j->w, j->h);
    for (size_t i = 0; i < n; i++, from += j->kinds)
        for (int k = 0; k < c; k++) {
            uint8_t v = from[colours == 1 ? 0 : k];

            out[i * (size_t)c + (size_t)k] =
                alpha ? over_black(v, from[colours]) : v;
        }
    free(j->pixels);
    j->pixels = out;
    return SP_OK;
}

static sp_err read_job(struct job *j, sp_image_size want, bool resize)
{
    SP_TRY(open_header(j));
    if (want.c == 1 && j->kinds >= 3)
        return sp_fail(SP_EDATA,
                       "%s: is a colour image, but 1 channel is wanted; "
                       "convert it to grey or set the channels to 3",
                       j->path);
    if (!resize && (j->h != want.h || j->w != want.w))
        return sp_fail(SP_EDATA,
                       "%s: has %d x %d pixels (height x width), not %d x "
                       "%d; scale it or switch resizing on",
                       j->path, j->h, j->w, want.h, want.w);
    SP_TRY(decode(j));
    return convert(j, want.c);
}

sp_err sp_png_read(const char *path, int h, int w, int c, bool resize,
                   uint8_t *image)
{
    struct job j = { .path = path };
    sp_image_size want = { h, w, c };
    sp_err err;

    if (h < 1 || w < 1 || h > MAX_SIDE || w > MAX_SIDE || (c != 1 && c != 3))
        return sp_fail(SP_EARG,
                       "%s: wanted as %d x %d x %d; sides are 1 to %d, "
                       "channels 1 or 3",
                       path, h, w, c, MAX_SIDE);
    err = read_job(&j, want, resize);
    if (err == SP_OK)
        sp_image_resize(j.pixels, (sp_image_size){ j.h, j.w, c }, image, want);
    close_job(&j);
    return err;
}

sp_err sp_png_size(const char *path, int *h, int *w, int *c)
{
    struct job j = { .path = path };
    sp_err err = open_header(&j);

    if (err == SP_OK) {
        *h = j.h;
        *w = j.w;
        *c = j.kinds >= 3 ? 3 : 1;
    }
    close_job(&j);
    return err;
}
