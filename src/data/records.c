/* Data sets kept in files of fixed-size records, such as CIFAR. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sprat/data.h"

enum { PATH_SIZE = 4096, NAMES_LIMIT = 1 << 20 };

struct records {
    const sp_records *format;
    size_t record; /* bytes */
    size_t count[SP_SPLITS];
    uint8_t *bytes[SP_SPLITS];
    char *text; /* of the names file; names point into it */
    const char **names;
};

static size_t record_bytes(const sp_records *f)
{
    return (size_t)f->label_bytes + (size_t)f->h * (size_t)f->w * (size_t)f->c;
}

static sp_err join(char *path, const char *root, const char *file)
{
    if (snprintf(path, PATH_SIZE, "%s/%s", root, file) >= PATH_SIZE)
        return sp_fail(SP_EDATA, "%s: the path is too long", root);
    return SP_OK;
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* A file is missing: say why, if the folder shows it. */
static sp_err missing(const sp_records *f, const char *root, const char *file)
{
    char path[PATH_SIZE];

    for (size_t i = 0; i < f->hint_count; i++) {
        SP_TRY(join(path, root, f->hints[i].file));
        if (exists(path))
            return sp_fail(SP_EDATA, "%s: %s %s", f->set, path,
                           f->hints[i].text);
    }
    return sp_fail(SP_EDATA,
                   "%s: there is no file %s in %s; data.root must be the "
                   "folder that holds it (tools/get-data %s fetches the set)",
                   f->set, file, root, f->set);
}

static sp_err wrong_size(const sp_records *f, sp_split split, const char *path,
                         size_t size)
{
    size_t want = f->per_file[split] * record_bytes(f);

    return sp_fail(SP_EDATA,
                   "%s: %s has %zu bytes; %zu records of %zu make %zu: the "
                   "file is %s; fetch it again (tools/get-data %s)",
                   f->set, path, size, f->per_file[split], record_bytes(f),
                   want, size < want ? "cut short" : "of another kind", f->set);
}

/* The name of a split's i-th file; NULL past the last. */
static const char *file_at(const sp_records *f, sp_split split, size_t i)
{
    return f->files[split] ? f->files[split][i] : NULL;
}

/* Whether the files of a split are there, each of its size; how many there
 * are goes to *files. */
static sp_err check_files(const struct records *r, const char *root,
                          sp_split split, size_t *files)
{
    const sp_records *f = r->format;
    char path[PATH_SIZE];
    struct stat st;

    for (*files = 0; file_at(f, split, *files); ++*files) {
        SP_TRY(join(path, root, f->files[split][*files]));
        if (stat(path, &st) != 0)
            return missing(f, root, f->files[split][*files]);
        if (!S_ISREG(st.st_mode))
            return sp_fail(SP_EDATA,
                           "%s: %s is not a file; fetch the set "
                           "again (tools/get-data %s)",
                           f->set, path, f->set);
        if ((uint64_t)st.st_size != f->per_file[split] * r->record)
            return wrong_size(f, split, path, (size_t)st.st_size);
    }
    return SP_OK;
}

static sp_err check_labels(const sp_records *f, const char *path,
                           const uint8_t *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int label = records[i * record_bytes(f) + (size_t)f->label_at];

        if (label >= f->classes)
            return sp_fail(SP_EDATA,
                           "%s: %s: record %zu has label %d; labels are 0 to "
                           "%d: the file is damaged or of another kind",
                           f->set, path, i, label, f->classes - 1);
    }
    return SP_OK;
}

/* Append one file to the split's block. */
static sp_err load_file(struct records *r, sp_split split, const char *path)
{
    size_t count = r->format->per_file[split];
    size_t want = count * r->record, size;
    uint8_t *bytes, *to = r->bytes[split] + r->count[split] * r->record;

    SP_TRY(sp_read_file(path, want, &bytes, &size));
    if (size == want)
        memcpy(to, bytes, want);
    free(bytes);
    if (size != want)
        return wrong_size(r->format, split, path, size);
    SP_TRY(check_labels(r->format, path, to, count));
    r->count[split] += count;
    return SP_OK;
}

static sp_err load_split(struct records *r, const char *root, sp_split split,
                         size_t files)
{
    const sp_records *f = r->format;
    char path[PATH_SIZE];

    if (files == 0)
        return SP_OK;
    r->bytes[split] = malloc(files * f->per_file[split] * r->record);
    if (!r->bytes[split])
        return sp_fail(SP_ENOMEM, "%s: no memory for %zu files", f->set, files);
    for (size_t i = 0; i < files; i++) {
        SP_TRY(join(path, root, f->files[split][i]));
        SP_TRY(load_file(r, split, path));
    }
    return SP_OK;
}

/* Cut the text of the names file into lines. */
static sp_err split_names(struct records *r, const char *path)
{
    int classes = r->format->classes, n = 0;
    char *line = r->text;

    while (*line) {
        size_t length = strcspn(line, "\r\n");
        size_t skip = strspn(line + length, "\r\n");

        if (n < classes)
            r->names[n] = line;
        n++;
        line += length;
        memset(line, 0, skip);
        line += skip;
    }
    if (n == classes)
        return SP_OK;
    return sp_fail(SP_EDATA,
                   "%s: %s has %d lines; a name for each of %d classes is "
                   "expected",
                   r->format->set, path, n, classes);
}

static sp_err load_names(struct records *r, const char *root)
{
    const sp_records *f = r->format;
    char path[PATH_SIZE];
    uint8_t *bytes;
    size_t size;

    if (!f->names_file)
        return SP_OK;
    SP_TRY(join(path, root, f->names_file));
    if (!exists(path))
        return SP_OK;
    SP_TRY(sp_read_file(path, NAMES_LIMIT, &bytes, &size));
    r->text = realloc(bytes, size + 1);
    if (!r->text)
        free(bytes);
    r->names = calloc((size_t)f->classes, sizeof *r->names);
    if (!r->text || !r->names)
        return sp_fail(SP_ENOMEM, "%s: out of memory", f->set);
    r->text[size] = '\0';
    return split_names(r, path);
}

/* All files are looked at before any is read, which may take a while. */
static sp_err load_all(struct records *r, const char *root)
{
    size_t files[SP_SPLITS];

    for (int s = 0; s < SP_SPLITS; s++)
        SP_TRY(check_files(r, root, (sp_split)s, &files[s]));
    SP_TRY(load_names(r, root));
    for (int s = 0; s < SP_SPLITS; s++)
        SP_TRY(load_split(r, root, (sp_split)s, files[s]));
    return SP_OK;
}

void sp_records_describe(const sp_records *format, sp_data_info *info)
{
    *info = (sp_data_info){
        .h = format->h,
        .w = format->w,
        .c = format->c,
        .classes = format->classes,
        .class_names = format->class_names,
    };
    for (int s = 0; s < SP_SPLITS; s++)
        for (size_t i = 0; file_at(format, (sp_split)s, i); i++)
            info->count[s] += format->per_file[s];
}

sp_err sp_records_open(const sp_records *format, const char *root,
                       sp_data_info *info, void **state)
{
    struct records *r = calloc(1, sizeof *r);
    sp_err err;

    if (!r)
        return sp_fail(SP_ENOMEM, "%s: out of memory", format->set);
    r->format = format;
    r->record = record_bytes(format);
    err = load_all(r, root);
    if (err) {
        sp_records_close(r);
        return err;
    }
    sp_records_describe(format, info);
    if (r->names)
        info->class_names = r->names;
    *state = r;
    return SP_OK;
}

sp_err sp_records_read(const void *state, sp_split split, size_t i,
                       uint8_t *image, int *label)
{
    const struct records *r = state;
    const sp_records *f = r->format;
    const uint8_t *record = r->bytes[split] + i * r->record;
    const uint8_t *planes = record + f->label_bytes;
    size_t pixels = (size_t)f->h * (size_t)f->w, c = (size_t)f->c;

    for (size_t k = 0; k < c; k++)
        for (size_t p = 0; p < pixels; p++)
            image[p * c + k] = planes[k * pixels + p];
    *label = record[f->label_at];
    return SP_OK;
}

void sp_records_close(void *state)
{
    struct records *r = state;

    if (!r)
        return;
    for (int s = 0; s < SP_SPLITS; s++)
        free(r->bytes[s]);
    free(r->text);
    free(r->names);
    free(r);
}
