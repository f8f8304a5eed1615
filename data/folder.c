/* PNG images in folders by class: ROOT/train/CLASS/NAME.png and
 * ROOT/test/CLASS/NAME.png. Classes and images are numbered in the byte order
 * of their names. Hidden files and folders (.NAME) are left out; everything
 * else must be what it should be. All images are decoded once when opening,
 * so that none can fail later, and again whenever they are wanted.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sprat/data.h"

/* Of a validation split there are no folders. */
enum { SPLITS = SP_TEST + 1 };
enum { PATH_SIZE = 4096, MAX_SIDE = 16384 };

static const char *const splits[SPLITS] = { "train", "test" };

struct settings {
    int height, width, channels, classes;
    bool resize;
};

/* Names in a folder, sorted. */
struct names {
    char **name;
    size_t count, capacity;
};

struct folder {
    int h, w, c;
    bool resize;
    struct names classes;
    struct names path[SPLITS]; /* of every image, in order */
    size_t *first[SPLITS];     /* image of each class, and the end */
    size_t root; /* bytes of the root's path, where theirs go on */
};

#define AT(field) offsetof(struct settings, field)

static const sp_key keys[] = {
    { "height", SP_INT, AT(height), "0", 0, MAX_SIDE,
      "pixels; 0: as the first image has", NULL },
    { "width", SP_INT, AT(width), "0", 0, MAX_SIDE,
      "pixels; 0: as the first image has", NULL },
    { "channels", SP_INT, AT(channels), "3", 1, 3, "1 (grey) or 3 (RGB)",
      NULL },
    { "classes", SP_INT, AT(classes), "0", 0, 1e6,
      "class folders; 0: as many as there are", NULL },
    { "resize", SP_BOOL, AT(resize), "false", 0, 0,
      "scale images of another size instead of refusing them", NULL },
};

static sp_err check_channels(const struct settings *s)
{
    if (s->channels != 1 && s->channels != 3)
        return sp_fail(SP_EDATA, "data.channels: %d is neither 1 nor 3",
                       s->channels);
    return SP_OK;
}

static sp_err describe(const void *own, sp_data_info *info)
{
    const struct settings *s = own;

    SP_TRY(check_channels(s));
    if (s->height == 0 || s->width == 0 || s->classes == 0)
        return sp_fail(SP_EDATA,
                       "folder: size and classes stand in the files only; "
                       "set data.height, data.width and data.classes to go "
                       "without them");
    *info = (sp_data_info){
        .h = s->height, .w = s->width, .c = s->channels, .classes = s->classes
    };
    return SP_OK;
}

static sp_err join(char *path, const char *folder, const char *name)
{
    if (snprintf(path, PATH_SIZE, "%s/%s", folder, name) >= PATH_SIZE)
        return sp_fail(SP_EDATA, "folder: %s: the path is too long", folder);
    return SP_OK;
}

static sp_err add_name(struct names *n, const char *name)
{
    if (n->count == n->capacity) {
        size_t capacity = n->capacity ? 2 * n->capacity : 64;
        char **more = realloc(n->name, capacity * sizeof *more);

        if (!more)
            return sp_fail(SP_ENOMEM, "folder: out of memory");
        n->name = more;
        n->capacity = capacity;
    }
    n->name[n->count] = strdup(name);
    if (!n->name[n->count])
        return sp_fail(SP_ENOMEM, "folder: out of memory");
    n->count++;
    return SP_OK;
}

static void free_names(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    *n = (struct names){ 0 };
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The visible names in a folder; the system gives them in any order. */
static sp_err list_folder(const char *path, struct names *out)
{
    DIR *d = opendir(path);
    sp_err err = SP_OK;
    struct dirent *e;

    if (!d)
        return sp_fail(SP_EDATA,
                       "folder: %s cannot be opened (%s); images are looked "
                       "for in ROOT/train/CLASS/ and ROOT/test/CLASS/",
                       path, strerror(errno));
    errno = 0;
    while (err == SP_OK && (e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.')
            err = add_name(out, e->d_name);
        errno = 0;
    }
    if (err == SP_OK && errno != 0)
        err = sp_fail(SP_EIO, "folder: %s cannot be read (%s)", path,
                      strerror(errno));
    closedir(d);
    if (out->count > 0)
        qsort(out->name, out->count, sizeof *out->name, by_bytes);
    return err;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_png_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (strcmp(dot, ".png") == 0 || strcmp(dot, ".PNG") == 0);
}

/* Append the images of one class to the split's. */
static sp_err add_class(struct names *images, const char *path)
{
    struct names files = { 0 };
    char file[PATH_SIZE];
    sp_err err = list_folder(path, &files);

    for (size_t i = 0; i < files.count && err == SP_OK; i++) {
        err = join(file, path, files.name[i]);
        if (err == SP_OK && is_folder(file))
            err = sp_fail(SP_EDATA,
                          "folder: %s is a folder within a class; move its "
                          "images up or remove it",
                          file);
        else if (err == SP_OK && !is_png_name(file))
            err = sp_fail(SP_EDATA,
                          "folder: %s is not a PNG by its name; convert or "
                          "remove it",
                          file);
        if (err == SP_OK)
            err = add_name(images, file);
    }
    if (err == SP_OK && files.count == 0)
        err = sp_fail(SP_EDATA,
                      "folder: class folder %s is empty; remove it or fill "
                      "it",
                      path);
    free_names(&files);
    return err;
}

/* Both splits must have the same classes. */
static sp_err compare_classes(const struct names *train,
                              const struct names *test, const char *root)
{
    size_t i = 0, j = 0;

    while (i < train->count || j < test->count) {
        int order = i == train->count  ? 1
                    : j == test->count ? -1
                                       : strcmp(train->name[i], test->name[j]);

        if (order != 0)
            return sp_fail(SP_EDATA,
                           "folder: class '%s' is in %s/%s but not in %s/%s; "
                           "labels would not fit",
                           order < 0 ? train->name[i] : test->name[j], root,
                           splits[order > 0], root, splits[order < 0]);
        i++;
        j++;
    }
    return SP_OK;
}

/* Find the classes of a split and all their images. */
static sp_err list_split(struct folder *f, const char *root, sp_split split,
                         struct names *classes)
{
    char base[PATH_SIZE], path[PATH_SIZE];

    SP_TRY(join(base, root, splits[split]));
    SP_TRY(list_folder(base, classes));
    if (classes->count == 0)
        return sp_fail(SP_EDATA, "folder: there is no class folder in %s",
                       base);
    f->first[split] = calloc(classes->count + 1, sizeof *f->first[split]);
    if (!f->first[split])
        return sp_fail(SP_ENOMEM, "folder: out of memory");
    for (size_t k = 0; k < classes->count; k++) {
        SP_TRY(join(path, base, classes->name[k]));
        if (!is_folder(path))
            return sp_fail(SP_EDATA,
                           "folder: %s is not a class folder; move or remove "
                           "it",
                           path);
        SP_TRY(add_class(&f->path[split], path));
        f->first[split][k + 1] = f->path[split].count;
    }
    return SP_OK;
}

static sp_err list_all(struct folder *f, const char *root)
{
    struct names test = { 0 };
    sp_err err = list_split(f, root, SP_TRAIN, &f->classes);

    if (err == SP_OK)
        err = list_split(f, root, SP_TEST, &test);
    if (err == SP_OK)
        err = compare_classes(&f->classes, &test, root);
    free_names(&test);
    return err;
}

/* The size: as asked for, or as the first image has. */
static sp_err set_size(struct folder *f, const struct settings *s)
{
    int h, w, c;

    f->c = s->channels;
    f->resize = s->resize;
    SP_TRY(sp_png_size(f->path[SP_TRAIN].name[0], &h, &w, &c));
    f->h = s->height > 0 ? s->height : h;
    f->w = s->width > 0 ? s->width : w;
    return SP_OK;
}

static sp_err decode_all(const struct folder *f)
{
    uint8_t *image = malloc((size_t)f->h * (size_t)f->w * (size_t)f->c);
    sp_err err = SP_OK;

    if (!image)
        return sp_fail(SP_ENOMEM, "folder: out of memory");
    for (int s = 0; s < SPLITS; s++)
        for (size_t i = 0; i < f->path[s].count && err == SP_OK; i++)
            err = sp_png_read(f->path[s].name[i], f->h, f->w, f->c, f->resize,
                              image);
    free(image);
    return err;
}

static sp_err load(struct folder *f, const char *root, const struct settings *s,
                   sp_data_info *info)
{
    SP_TRY(check_channels(s));
    SP_TRY(list_all(f, root));
    if (s->classes > 0 && (size_t)s->classes != f->classes.count)
        return sp_fail(SP_EDATA,
                       "folder: %s has %zu classes, but data.classes is %d",
                       root, f->classes.count, s->classes);
    SP_TRY(set_size(f, s));
    SP_TRY(decode_all(f));
    *info = (sp_data_info){
        .h = f->h, .w = f->w, .c = f->c, .classes = (int)f->classes.count
    };
    info->class_names = (const char *const *)f->classes.name;
    for (int i = 0; i < SPLITS; i++)
        info->count[i] = f->path[i].count;
    return SP_OK;
}

static void close_set(void *state)
{
    struct folder *f = state;

    for (int s = 0; s < SPLITS; s++) {
        free_names(&f->path[s]);
        free(f->first[s]);
    }
    free_names(&f->classes);
    free(f);
}

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    sp_err err;

    if (!f)
        return sp_fail(SP_ENOMEM, "folder: out of memory");
    f->root = strlen(root);
    err = load(f, root, own, info);
    if (err) {
        close_set(f);
        return err;
    }
    *state = f;
    return SP_OK;
}

/* The class whose images include image i: the last that starts at or before
 * it, by bisection. */
static int class_of(const struct folder *f, sp_split split, size_t i)
{
    size_t low = 0, high = f->classes.count;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (f->first[split][middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return (int)low;
}

static sp_err read_sample(const void *state, sp_split split, size_t i,
                          uint8_t *image, int *label)
{
    const struct folder *f = state;

    *label = class_of(f, split, i);
    return sp_png_read(f->path[split].name[i], f->h, f->w, f->c, f->resize,
                       image);
}

/* Names within the folder, and sizes: decoding all images takes too long. */
static sp_err fingerprint(const void *state, sp_split split,
                          void (*add)(void *arg, const void *bytes, size_t n),
                          void *arg)
{
    const struct folder *f = state;
    const struct names *all = &f->path[split];
    struct stat st;

    for (size_t i = 0; i < all->count; i++) {
        const char *name = all->name[i] + f->root;
        int64_t size;

        if (stat(all->name[i], &st) != 0)
            return sp_fail(SP_EIO, "folder: %s cannot be read (%s)",
                           all->name[i], strerror(errno));
        size = (int64_t)st.st_size;
        add(arg, name, strlen(name));
        add(arg, &size, sizeof size);
    }
    return SP_OK;
}

const sp_data_set sp_data_set_folder = {
    .entry = { .name = "folder",
               .help = "PNG images as train/CLASS/*.png and test/CLASS/*.png",
               .cfg_size = sizeof(struct settings),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .folder = "images",
    .describe = describe,
    .open = open_set,
    .read = read_sample,
    .close = close_set,
    .fingerprint = fingerprint,
};
