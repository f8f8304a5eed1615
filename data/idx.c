/* IDX files, plain or gzip: MNIST, Fashion-MNIST and their kin.
 *
 * A file starts with 0, 0, the type (8: bytes), the number of dimensions, and
 * the dimensions as big-endian 32-bit numbers; the bytes follow.
 *
 * Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sprat/data.h"

/* Of a validation split there are no files. */
enum { SPLITS = SP_TEST + 1 };
enum { PATH_SIZE = 4096, MAX_SIDE = 16384, BYTES = 8, MAX_DIMS = 3 };

static const size_t size_limit = (size_t)1 << 32;

static const char *const parts[SPLITS] = { "train", "t10k" };

struct settings {
    int height, width, classes;
};

/* One file in memory. */
struct array {
    uint8_t *bytes; /* the whole file */
    const uint8_t *values;
    size_t dims[MAX_DIMS];
};

struct idx {
    struct array images[SPLITS], labels[SPLITS];
    size_t pixels;
};

#define AT(field) offsetof(struct settings, field)

static const sp_key keys[] = {
    { "height", SP_INT, AT(height), "28", 1, MAX_SIDE,
      "pixels; checked against the files", NULL },
    { "width", SP_INT, AT(width), "28", 1, MAX_SIDE,
      "pixels; checked against the files", NULL },
    { "classes", SP_INT, AT(classes), "0", 0, 256,
      "labels; 0: one more than the largest in the files", NULL },
};

static sp_err describe(const void *own, sp_data_info *info)
{
    const struct settings *s = own;

    if (s->classes == 0)
        return sp_fail(SP_EDATA,
                       "idx: how many classes there are stands in the files, "
                       "which are not opened here; set data.classes, which "
                       "is 10 for MNIST and Fashion-MNIST");
    *info = (sp_data_info){
        .h = s->height, .w = s->width, .c = 1, .classes = s->classes
    };
    return SP_OK;
}

static size_t number(const uint8_t *b)
{
    return (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
}

/* The path of a file, or of its gzip form if only that is there. */
static sp_err find_file(char *path, const char *root, const char *part,
                        const char *kind)
{
    static const char *const ends[] = { "", ".gz" };

    for (int i = 0; i < 2; i++) {
        if (snprintf(path, PATH_SIZE, "%s/%s-%s-ubyte%s", root, part, kind,
                     ends[i]) >= PATH_SIZE)
            return sp_fail(SP_EDATA, "idx: %s: the path is too long", root);
        if (access(path, F_OK) == 0)
            return SP_OK;
    }
    return sp_fail(SP_EDATA,
                   "idx: there is no file %s-%s-ubyte or %s-%s-ubyte.gz in "
                   "%s; data.root must be the folder that holds it",
                   part, kind, part, kind, root);
}

static sp_err check_header(struct array *a, const char *path, int dims,
                           size_t size)
{
    const uint8_t *b = a->bytes;
    size_t header = 4 + 4 * (size_t)dims;
    uint64_t want = 1;

    if (size < 4 || b[0] != 0 || b[1] != 0)
        return sp_fail(SP_EDATA,
                       "idx: %s: not an IDX file (wrong magic number)", path);
    if (b[2] != BYTES)
        return sp_fail(SP_EDATA,
                       "idx: %s: holds values of type 0x%02x; only bytes "
                       "(0x08) are read",
                       path, b[2]);
    if (b[3] != dims)
        return sp_fail(SP_EDATA,
                       "idx: %s: has %d dimensions, not %d (wrong magic "
                       "number): %s",
                       path, b[3], dims,
                       dims == 1 ? "are these images, not labels?"
                                 : "are these labels, not images?");
    if (size < header)
        return sp_fail(SP_EDATA, "idx: %s: cut short within its header", path);
    for (int i = 0; i < dims; i++) {
        a->dims[i] = number(b + 4 + 4 * i);
        if (a->dims[i] == 0 || (i > 0 && a->dims[i] > MAX_SIDE))
            return sp_fail(SP_EDATA,
                           "idx: %s: declares a size of %zu; 1 to %d pixels "
                           "and at least one item are read",
                           path, a->dims[i], MAX_SIDE);
        want *= a->dims[i]; /* below 2^60 */
    }
    if (size - header != want)
        return sp_fail(SP_EDATA,
                       "idx: %s: declares %llu bytes of values but holds "
                       "%zu; fetch it again",
                       path, (unsigned long long)want, size - header);
    a->values = b + header;
    return SP_OK;
}

/* Files whose last part names their number of dimensions. */
static sp_err load(struct array *a, const char *root, sp_split split, int dims)
{
    char path[PATH_SIZE];
    size_t size;

    SP_TRY(find_file(path, root, parts[split],
                     dims == 1 ? "labels-idx1" : "images-idx3"));
    SP_TRY(sp_read_file(path, size_limit, &a->bytes, &size));
    return check_header(a, path, dims, size);
}

static sp_err load_split(struct idx *x, const char *root, sp_split split)
{
    struct array *images = &x->images[split], *labels = &x->labels[split];

    SP_TRY(load(images, root, split, 3));
    SP_TRY(load(labels, root, split, 1));
    if (images->dims[0] != labels->dims[0])
        return sp_fail(SP_EDATA,
                       "idx: %s: %s has %zu images but %zu labels; the files "
                       "do not belong together",
                       root, parts[split], images->dims[0], labels->dims[0]);
    return SP_OK;
}

static sp_err check_size(const struct idx *x, const struct settings *s,
                         const char *root)
{
    for (int i = 0; i < SPLITS; i++) {
        const size_t *d = x->images[i].dims;

        if (d[1] != (size_t)s->height || d[2] != (size_t)s->width)
            return sp_fail(SP_EDATA,
                           "idx: %s: the %s images have %zu x %zu pixels, "
                           "not %d x %d; set data.height and data.width",
                           root, parts[i], d[1], d[2], s->height, s->width);
    }
    return SP_OK;
}

/* Every label must be below `classes`; 0: *found becomes what they need. */
static sp_err check_labels(const struct idx *x, int classes, const char *root,
                           int *found)
{
    *found = classes;
    for (int s = 0; s < SPLITS; s++)
        for (size_t i = 0; i < x->labels[s].dims[0]; i++) {
            int label = x->labels[s].values[i];

            if (classes > 0 && label >= classes)
                return sp_fail(SP_EDATA,
                               "idx: %s/%s-labels-idx1-ubyte: record %zu has "
                               "label %d; labels are 0 to %d as "
                               "data.classes says",
                               root, parts[s], i, label, classes - 1);
            if (label >= *found)
                *found = label + 1;
        }
    return SP_OK;
}

static void close_set(void *state)
{
    struct idx *x = state;

    for (int s = 0; s < SPLITS; s++) {
        free(x->images[s].bytes);
        free(x->labels[s].bytes);
    }
    free(x);
}

static sp_err load_all(struct idx *x, const char *root,
                       const struct settings *s, sp_data_info *info)
{
    int classes;

    for (int i = 0; i < SPLITS; i++)
        SP_TRY(load_split(x, root, (sp_split)i));
    SP_TRY(check_size(x, s, root));
    SP_TRY(check_labels(x, s->classes, root, &classes));
    x->pixels = (size_t)s->height * (size_t)s->width;
    *info = (sp_data_info){
        .h = s->height, .w = s->width, .c = 1, .classes = classes
    };
    for (int i = 0; i < SPLITS; i++)
        info->count[i] = x->images[i].dims[0];
    return SP_OK;
}

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    struct idx *x = calloc(1, sizeof *x);
    sp_err err;

    if (!x)
        return sp_fail(SP_ENOMEM, "idx: out of memory");
    err = load_all(x, root, own, info);
    if (err) {
        close_set(x);
        return err;
    }
    *state = x;
    return SP_OK;
}

static sp_err read_sample(const void *state, sp_split split, size_t i,
                          uint8_t *image, int *label)
{
    const struct idx *x = state;

    memcpy(image, x->images[split].values + i * x->pixels, x->pixels);
    *label = x->labels[split].values[i];
    return SP_OK;
}

const sp_data_set sp_data_set_idx = {
    .entry = { .name = "idx",
               .help = "IDX files of the MNIST family, plain or gzip",
               .cfg_size = sizeof(struct settings),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .folder = "fashion-mnist",
    .describe = describe,
    .open = open_set,
    .read = read_sample,
    .close = close_set,
};
