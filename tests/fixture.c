#include "fixture.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PATH_SIZE = 1024, PATHS = 4 };

char *sp_scratch_new(void)
{
    const char *base = getenv("TMPDIR");
    char path[PATH_SIZE];

    snprintf(path, sizeof path, "%s/sprat-test-XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(path));
    return strdup(path);
}

static void remove_all(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d)) != NULL) {
        char path[PATH_SIZE];
        struct stat st;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        ck_assert_int_lt(
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name),
            (int)sizeof path);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            remove_all(path);
        else
            unlink(path);
    }
    closedir(d);
    rmdir(folder);
}

void sp_scratch_free(char *folder)
{
    remove_all(folder);
    free(folder);
}

const char *sp_scratch_path(const char *folder, const char *name)
{
    static char paths[PATHS][PATH_SIZE];
    static int next;
    char *path = paths[next++ % PATHS];

    snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    return path;
}

static void make_parents(const char *path)
{
    char part[PATH_SIZE];

    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        ck_assert(mkdir(part, 0777) == 0 || errno == EEXIST);
    }
}

static FILE *create(const char *folder, const char *name)
{
    const char *path = sp_scratch_path(folder, name);
    FILE *f;

    make_parents(path);
    unlink(path); /* some file systems sync a file that is overwritten */
    f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    return f;
}

void sp_scratch_write(const char *folder, const char *name, const void *bytes,
                      size_t size)
{
    FILE *f = create(folder, name);

    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

void sp_scratch_gzip(const char *folder, const char *name, const void *bytes,
                     size_t size)
{
    const char *path = sp_scratch_path(folder, name);
    gzFile f;

    make_parents(path);
    f = gzopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose_w(f), Z_OK);
}

void sp_scratch_resize(const char *folder, const char *name, size_t size)
{
    const char *path = sp_scratch_path(folder, name);

    if (access(path, F_OK) != 0)
        fclose(create(folder, name));
    ck_assert_int_eq(truncate(path, (off_t)size), 0);
}

static void set_colours(png_structp png, png_infop info, const sp_png_spec *s)
{
    if (s->palette) {
        png_color colours[256];

        for (int i = 0; i < s->colours; i++)
            colours[i] = (png_color){ s->palette[3 * i], s->palette[3 * i + 1],
                                      s->palette[3 * i + 2] };
        png_set_PLTE(png, info, colours, s->colours);
    }
    if (s->palette_alpha)
        png_set_tRNS(png, info, s->palette_alpha, s->colours, NULL);
    if (s->transparent) {
        png_color_16 one = { .gray = s->transparent[0],
                             .red = s->transparent[0] };

        if (s->colour == PNG_COLOR_TYPE_RGB) {
            one.green = s->transparent[1];
            one.blue = s->transparent[2];
        }
        png_set_tRNS(png, info, NULL, 0, &one);
    }
}

void sp_scratch_png(const char *folder, const char *name, const sp_png_spec *s)
{
    FILE *f = create(folder, name);
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    size_t row;
    png_bytep *rows = malloc((size_t)s->h * sizeof *rows);

    ck_assert_ptr_nonnull(rows);
    ck_assert_int_eq(setjmp(png_jmpbuf(png)), 0);
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)s->w, (png_uint_32)s->h, s->bits,
                 s->colour,
                 s->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    set_colours(png, info, s);
    png_write_info(png, info);
    row = png_get_rowbytes(png, info);
    for (int y = 0; y < s->h; y++)
        rows[y] = (png_bytep)(uintptr_t)(s->rows + row * (size_t)y);
    png_write_image(png, rows);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(rows);
    ck_assert_int_eq(fclose(f), 0);
}

void sp_scratch_flat_png(const char *folder, const char *name, int h, int w,
                         int c, uint8_t value)
{
    size_t n = (size_t)h * (size_t)w * (size_t)c;
    uint8_t *rows = malloc(n);

    ck_assert_ptr_nonnull(rows);
    memset(rows, value, n);
    sp_scratch_png(folder, name,
                   &(sp_png_spec){ .w = w,
                                   .h = h,
                                   .bits = 8,
                                   .colour = c == 1 ? PNG_COLOR_TYPE_GRAY
                                                    : PNG_COLOR_TYPE_RGB,
                                   .rows = rows });
    free(rows);
}

static void read_list(sp_list *list, const char *text)
{
    const char *p = text + strspn(text, "[ ");

    list->count = 0;
    while (*p && *p != ']') {
        char *end;

        list->value[list->count++] = strtod(p, &end);
        ck_assert_ptr_ne(end, p);
        p = end + strspn(end, ", ");
    }
}

/* The default of a key that is no list, as a number. */
static double fallback(const sp_key *k)
{
    size_t n = strlen(k->fallback);
    int choice = 0;

    if (k->kind == SP_BOOL)
        return strcmp(k->fallback, "true") == 0;
    if (k->kind != SP_CHOICE)
        return atof(k->fallback);
    for (const char *c = k->choices; *c;
         c += strcspn(c, "|"), c += *c == '|', choice++)
        if (strncmp(c, k->fallback, n) == 0 && (!c[n] || c[n] == '|'))
            return choice;
    ck_abort_msg("%s: its default is no choice", k->name);
    return -1;
}

void *sp_own_new(const sp_entry *entry)
{
    char *own = calloc(1, entry->cfg_size + 1);

    ck_assert_ptr_nonnull(own);
    for (size_t i = 0; i < entry->key_count; i++) {
        const sp_key *k = &entry->keys[i];

        if (k->kind == SP_LIST)
            read_list((sp_list *)(void *)(own + k->offset), k->fallback);
        else
            sp_own_set(own, entry, k->name, fallback(k));
    }
    return own;
}

void sp_own_set(void *own, const sp_entry *entry, const char *key, double value)
{
    for (size_t i = 0; i < entry->key_count; i++) {
        const sp_key *k = &entry->keys[i];
        void *field = (char *)own + k->offset;

        if (strcmp(k->name, key) != 0)
            continue;
        if (k->kind == SP_BOOL)
            *(bool *)field = value != 0;
        else if (k->kind == SP_INT || k->kind == SP_CHOICE)
            *(int *)field = (int)value;
        else if (k->kind == SP_FLOAT)
            *(double *)field = value;
        else
            ck_abort_msg("%s: a kind that is not set here", key);
        return;
    }
    ck_abort_msg("there is no key %s", key);
}

bool sp_error_has(const char *const *words)
{
    for (; *words; words++)
        if (!strstr(sp_last_error(), *words)) {
            fprintf(stderr, "'%s' is not in: %s\n", *words, sp_last_error());
            return false;
        }
    return true;
}
