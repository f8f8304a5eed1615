/* Writing and reading of manifest.json. */
#include "train/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

const char *const sp_checkpoint_files[SP_CHECKPOINT_FILES] = {
    [SP_FILE_MODEL] = "model.safetensors",
    [SP_FILE_OPTIM] = "optim.safetensors",
    [SP_FILE_RANK] = "rank-0000.safetensors",
};

/* The last line, "...HEX"}, and its fixed length with the line end. */
static const char seal_key[] = "\"manifest_sha256\":\"";
static const char seal_end[] = "\"}\n";

enum {
    SEAL = sizeof seal_key - 1 + SP_HASH_HEX - 1 + sizeof seal_end - 1,
    LIMIT = 1 << 26,     /* bytes of any sane manifest */
    SIZE_LIMIT = 1 << 24 /* of images and class counts */
};

/* What the network sees, so that it can be used without the data set. */
static void write_data(sp_json *j, const sp_manifest *m)
{
    sp_json_open(j, m->text ? "text" : "images");
    if (!m->text) {
        sp_json_int(j, "height", m->h);
        sp_json_int(j, "width", m->w);
        sp_json_int(j, "channels", m->c);
    }
    if (m->text) {
        sp_json_text(j, "level", m->chars ? "char" : "word");
        sp_json_int(j, "bptt", m->bptt);
    }
    sp_json_int(j, "classes", m->classes);
    if (m->class_names) {
        sp_json_list(j, "class_names");
        for (int i = 0; i < m->classes; i++)
            sp_json_text(j, NULL, m->class_names[i]);
        sp_json_close(j);
    }
    sp_json_close(j);
}

static void write_body(sp_json *j, const sp_manifest *m)
{
    sp_json_open(j, NULL);
    sp_json_int(j, "format", SP_CHECKPOINT_FORMAT);
    sp_json_text(j, "sprat", SP_VERSION);
    sp_json_text(j, "stage", "full");
    sp_json_text(j, "isa", m->isa);
    sp_json_text(j, "winograd", m->winograd);
    sp_json_text(j, "optimizer", m->optimizer);
    sp_json_int(j, "batches", m->batches);
    sp_json_int(j, "batch_size", m->batch);
    sp_json_open(j, "state");
    sp_train_state_write(j, &m->state);
    sp_json_close(j);
    write_data(j, m);
    sp_json_open(j, "files");
    for (int i = 0; i < SP_CHECKPOINT_FILES; i++) {
        sp_json_open(j, sp_checkpoint_files[i]);
        sp_json_int(j, "size", (int64_t)m->stamps[i].size);
        sp_json_text(j, "sha256", m->stamps[i].sha256);
        sp_json_close(j);
    }
    sp_json_close(j);
    sp_json_text(j, "config", m->config);
    sp_json_close(j);
}

/* The hash of the text before the seal. */
static void seal_of(const char *text, size_t size, char hex[SP_HASH_HEX])
{
    sp_hash h;

    sp_hash_start(&h);
    sp_hash_add(&h, text, size);
    sp_hash_end(&h, hex);
}

sp_err sp_manifest_write(const char *folder, const sp_manifest *m)
{
    sp_json j = { .pretty = true };
    sp_text out = { 0 };
    const char *body;
    char hex[SP_HASH_HEX];
    char *path = sp_path(folder, "manifest.json");
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "%s: out of memory", folder);

    write_body(&j, m);
    if (e == SP_OK)
        e = sp_json_finish(&j, &body);
    if (e == SP_OK) {
        size_t size = strlen(body);
        while (size > 0 && (body[size - 1] == '}' || body[size - 1] == '\n'))
            size--;
        sp_text_put(&out, body, size);
        sp_text_add(&out, ",\n");
        seal_of(sp_text_string(&out), out.size, hex);
        sp_text_add(&out, "%s%s%s", seal_key, hex, seal_end);
        e = sp_text_check(&out);
    }
    if (e == SP_OK)
        e = sp_file_write_synced(path, out.bytes, out.size);
    sp_text_free(&out);
    sp_json_free(&j);
    free(path);
    return e;
}

static sp_err check_seal(const char *path, const char *text, size_t size)
{
    char hex[SP_HASH_HEX], seal[SEAL + 1];

    if (size > SEAL) {
        seal_of(text, size - SEAL, hex);
        snprintf(seal, sizeof seal, "%s%s%s", seal_key, hex, seal_end);
        if (memcmp(seal, text + size - SEAL, SEAL) == 0)
            return SP_OK;
    }
    return sp_fail(SP_EFORMAT,
                   "%s: truncated or changed: its checksum does not fit", path);
}

static sp_err read_text(const sp_json_value *root, const char *key, char **out)
{
    const char *text;

    SP_TRY(sp_json_get_text(root, key, &text));
    *out = sp_copy(text, strlen(text));
    return *out ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

/* Checkpoints from before there were Winograd's tiles used none. */
static sp_err read_winograd(const sp_json_value *root, sp_manifest *m)
{
    const sp_json_value *v = sp_json_find(root, "winograd");

    if (v && v->kind == SP_JSON_NULL)
        return SP_OK;
    if (v)
        return read_text(root, "winograd", &m->winograd);
    m->winograd = sp_copy("", 0);
    return m->winograd ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

static sp_err read_stamps(const sp_json_value *root, sp_manifest *m)
{
    const sp_json_value *files, *file;
    const char *hex;
    int64_t size;

    SP_TRY(sp_json_get(root, "files", SP_JSON_OBJECT, &files));
    for (int i = 0; i < SP_CHECKPOINT_FILES; i++) {
        SP_TRY(
            sp_json_get(files, sp_checkpoint_files[i], SP_JSON_OBJECT, &file));
        SP_TRY(sp_json_get_int(file, "size", &size));
        SP_TRY(sp_json_get_text(file, "sha256", &hex));
        m->stamps[i].size = (uint64_t)size;
        snprintf(m->stamps[i].sha256, SP_HASH_HEX, "%s", hex);
    }
    return SP_OK;
}

static sp_err read_size(const sp_json_value *object, const char *key, int *out)
{
    int64_t value;

    SP_TRY(sp_json_get_int(object, key, &value));
    if (value < 1 || value > SIZE_LIMIT)
        return sp_fail(SP_EFORMAT, "%s: %s is %lld, outside 1 to %d",
                       object->where, key, (long long)value, SIZE_LIMIT);
    *out = (int)value;
    return SP_OK;
}

static sp_err read_names(const sp_json_value *data, sp_manifest *m)
{
    const sp_json_value *names = sp_json_find(data, "class_names"), *name;

    if (!names)
        return SP_OK;
    if (names->kind != SP_JSON_LIST || names->count != (size_t)m->classes)
        return sp_fail(SP_EFORMAT, "%s: class_names: not a list of %d",
                       data->where, m->classes);
    m->class_names = calloc(names->count, sizeof *m->class_names);
    if (!m->class_names)
        return sp_fail(SP_ENOMEM, "out of memory");
    name = names->first;
    for (int i = 0; i < m->classes; i++, name = name->next) {
        if (name->kind != SP_JSON_TEXT)
            return sp_fail(SP_EFORMAT, "%s: class_names: not all are texts",
                           data->where);
        m->class_names[i] = sp_copy(name->text, strlen(name->text));
        if (!m->class_names[i])
            return sp_fail(SP_ENOMEM, "out of memory");
    }
    return SP_OK;
}

static sp_err read_data(const sp_json_value *root, sp_manifest *m)
{
    const sp_json_value *data;
    const char *level;

    m->text = sp_json_find(root, "text") != NULL;
    SP_TRY(
        sp_json_get(root, m->text ? "text" : "images", SP_JSON_OBJECT, &data));
    if (!m->text) {
        SP_TRY(read_size(data, "height", &m->h));
        SP_TRY(read_size(data, "width", &m->w));
        SP_TRY(read_size(data, "channels", &m->c));
    } else {
        SP_TRY(sp_json_get_text(data, "level", &level));
        SP_TRY(sp_json_get_int(data, "bptt", &m->bptt));
        m->chars = strcmp(level, "char") == 0;
    }
    SP_TRY(read_size(data, "classes", &m->classes));
    return read_names(data, m);
}

static sp_err read_body(const sp_json_value *root, sp_manifest *m)
{
    const sp_json_value *state;
    const char *version, *stage;
    int64_t format;

    SP_TRY(sp_json_get_int(root, "format", &format));
    SP_TRY(sp_json_get_text(root, "sprat", &version));
    if (format != SP_CHECKPOINT_FORMAT)
        return sp_fail(SP_EFORMAT,
                       "%s: written by sprat %s in checkpoint format %lld, "
                       "this is sprat %s, which reads format %d: use that "
                       "version",
                       root->where, version, (long long)format, SP_VERSION,
                       SP_CHECKPOINT_FORMAT);
    SP_TRY(sp_json_get_text(root, "stage", &stage));
    if (strcmp(stage, "full") != 0)
        return sp_fail(SP_EFORMAT,
                       "%s: its program stage is \"%s\", this version knows "
                       "only \"full\"",
                       root->where, stage);
    SP_TRY(sp_json_get(root, "state", SP_JSON_OBJECT, &state));
    SP_TRY(sp_train_state_read(state, &m->state));
    SP_TRY(sp_json_get_int(root, "batches", &m->batches));
    SP_TRY(sp_json_get_int(root, "batch_size", &m->batch));
    SP_TRY(read_data(root, m));
    SP_TRY(read_stamps(root, m));
    SP_TRY(read_text(root, "isa", &m->isa));
    SP_TRY(read_winograd(root, m));
    SP_TRY(read_text(root, "optimizer", &m->optimizer));
    return read_text(root, "config", &m->config);
}

static sp_err check_file(const char *folder, const char *name,
                         const sp_st_stamp *stamp)
{
    char hex[SP_HASH_HEX];
    uint64_t size;
    char *path = sp_path(folder, "%s", name);
    sp_err e = path ? sp_file_hash(path, hex, &size)
                    : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && size != stamp->size)
        e = sp_fail(SP_EFORMAT,
                    "%s: has %" PRIu64 " bytes, %" PRIu64 " were written", path,
                    size, stamp->size);
    else if (e == SP_OK && strcmp(hex, stamp->sha256) != 0)
        e = sp_fail(SP_EFORMAT,
                    "%s: its bytes have changed since it was written (SHA-256)",
                    path);
    free(path);
    return e;
}

sp_err sp_manifest_read(const char *folder, sp_manifest *m)
{
    char *path = sp_path(folder, "manifest.json");
    uint8_t *bytes = NULL;
    sp_json_doc *doc = NULL;
    size_t size;
    sp_err e;

    *m = (sp_manifest){ 0 };
    e = path ? sp_file_read(path, LIMIT, &bytes, &size)
             : sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        e = check_seal(path, (const char *)bytes, size);
    if (e == SP_OK)
        e = sp_json_parse(&doc, path, bytes, size);
    if (e == SP_OK)
        e = read_body(sp_json_root(doc), m);
    for (int i = 0; e == SP_OK && i < SP_CHECKPOINT_FILES; i++)
        e = check_file(folder, sp_checkpoint_files[i], &m->stamps[i]);
    if (e != SP_OK)
        sp_manifest_free(m);
    sp_json_doc_free(doc);
    free(bytes);
    free(path);
    return e;
}

void sp_manifest_free(sp_manifest *m)
{
    for (int i = 0; m->class_names && i < m->classes; i++)
        free(m->class_names[i]);
    free(m->class_names);
    free(m->config);
    free(m->isa);
    free(m->winograd);
    free(m->optimizer);
    *m = (sp_manifest){ 0 };
}
