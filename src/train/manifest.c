/* Writing and reading of manifest.json. */
#include "train/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

const char *const sp_common_files[SP_COMMON_FILES] = {
    [SP_FILE_MODEL] = "model.safetensors",
    [SP_FILE_OPTIM] = "optim.safetensors",
};

const char *sp_rank_file(char out[SP_RANK_FILE_ROOM], int rank)
{
    snprintf(out, SP_RANK_FILE_ROOM, "rank-%04d.safetensors", rank);
    return out;
}

sp_err sp_rank_file_open(sp_st_file **f, const char *folder, int rank)
{
    char name[SP_RANK_FILE_ROOM];
    char *path = sp_path(folder, "%s", sp_rank_file(name, rank));
    sp_err e = path ? sp_st_open(f, path) : sp_fail(SP_ENOMEM, "out of memory");

    free(path);
    return e;
}

/* The last line, "...HEX"}, and its fixed length with the line end. */
static const char seal_key[] = "\"manifest_sha256\":\"";
static const char seal_end[] = "\"}\n";

static const char stage_full[] = "full", stage_low[] = "low rank";

enum {
    SEAL = sizeof seal_key - 1 + SP_HASH_HEX - 1 + sizeof seal_end - 1,
    LIMIT = 1 << 26,      /* bytes of any sane manifest */
    SIZE_LIMIT = 1 << 24, /* of images and class counts */
    RANK_LIMIT = 1 << 15  /* each is looked for among all */
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

static void write_stamp(sp_json *j, const sp_st_stamp *stamp)
{
    sp_json_int(j, "size", (int64_t)stamp->size);
    sp_json_text(j, "sha256", stamp->sha256);
}

static void write_files(sp_json *j, const sp_manifest *m)
{
    char name[SP_RANK_FILE_ROOM];

    sp_json_open(j, "files");
    for (int i = 0; i < SP_COMMON_FILES; i++) {
        sp_json_open(j, sp_common_files[i]);
        write_stamp(j, &m->stamps[i]);
        sp_json_close(j);
    }
    for (int r = 0; r < m->ranks; r++) {
        sp_json_open(j, sp_rank_file(name, r));
        write_stamp(j, &m->rank_stamps[r].stamp);
        sp_json_bool(j, "keeps", m->rank_stamps[r].keeps);
        sp_json_close(j);
    }
    sp_json_close(j);
}

static void write_body(sp_json *j, const sp_manifest *m)
{
    sp_json_open(j, NULL);
    sp_json_int(j, "format", SP_CHECKPOINT_FORMAT);
    sp_json_text(j, "sprat", SP_VERSION);
    sp_json_text(j, "stage", m->low ? stage_low : stage_full);
    sp_json_text(j, "isa", m->isa);
    sp_json_text(j, "winograd", m->winograd);
    sp_json_text(j, "optimizer", m->optimizer);
    sp_json_text(j, "compressor", m->compressor);
    sp_json_bool(j, "dense", m->dense);
    sp_json_int(j, "ranks", m->ranks);
    sp_json_int(j, "batches", m->batches);
    sp_json_int(j, "batch_size", m->batch);
    sp_json_open(j, "state");
    sp_train_state_write(j, &m->state);
    sp_json_close(j);
    sp_autorank_write(j, &m->autorank);
    write_data(j, m);
    write_files(j, m);
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

static sp_err read_size(const sp_json_value *object, const char *key, int most,
                        int *out)
{
    int64_t value;

    SP_TRY(sp_json_get_int(object, key, &value));
    if (value < 1 || value > most)
        return sp_fail(SP_EFORMAT, "%s: %s is %lld, outside 1 to %d",
                       object->where, key, (long long)value, most);
    *out = (int)value;
    return SP_OK;
}

static sp_err read_stamp(const sp_json_value *files, const char *name,
                         sp_st_stamp *stamp, const sp_json_value **file)
{
    const char *hex;
    int64_t size;

    SP_TRY(sp_json_get(files, name, SP_JSON_OBJECT, file));
    SP_TRY(sp_json_get_int(*file, "size", &size));
    SP_TRY(sp_json_get_text(*file, "sha256", &hex));
    stamp->size = (uint64_t)size;
    snprintf(stamp->sha256, SP_HASH_HEX, "%s", hex);
    return SP_OK;
}

static sp_err read_files(const sp_json_value *root, int64_t format,
                         sp_manifest *m)
{
    const sp_json_value *files, *file;
    char name[SP_RANK_FILE_ROOM];

    SP_TRY(sp_json_get(root, "files", SP_JSON_OBJECT, &files));
    for (int i = 0; i < SP_COMMON_FILES; i++)
        SP_TRY(read_stamp(files, sp_common_files[i], &m->stamps[i], &file));
    if ((size_t)m->ranks > files->count)
        return sp_fail(SP_EFORMAT, "%s: ranks is %d, but files has %zu",
                       root->where, m->ranks, files->count);
    m->rank_stamps = calloc((size_t)m->ranks, sizeof *m->rank_stamps);
    if (!m->rank_stamps)
        return sp_fail(SP_ENOMEM, "out of memory");
    for (int r = 0; r < m->ranks; r++) {
        sp_rank_stamp *s = &m->rank_stamps[r];

        SP_TRY(read_stamp(files, sp_rank_file(name, r), &s->stamp, &file));
        if (format > 1)
            SP_TRY(sp_json_get_bool(file, "keeps", &s->keeps));
    }
    return SP_OK;
}

/* Who trained, and how gradients went between them. */
static sp_err read_ranks(const sp_json_value *root, int64_t format,
                         sp_manifest *m)
{
    if (format > 1) {
        SP_TRY(read_size(root, "ranks", RANK_LIMIT, &m->ranks));
        SP_TRY(sp_json_get_bool(root, "dense", &m->dense));
        SP_TRY(read_text(root, "compressor", &m->compressor));
    } else {
        m->ranks = 1;
        m->dense = true;
        m->compressor = sp_copy("none", 4);
        if (!m->compressor)
            return sp_fail(SP_ENOMEM, "out of memory");
    }
    return read_files(root, format, m);
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
        SP_TRY(read_size(data, "height", SIZE_LIMIT, &m->h));
        SP_TRY(read_size(data, "width", SIZE_LIMIT, &m->w));
        SP_TRY(read_size(data, "channels", SIZE_LIMIT, &m->c));
    } else {
        SP_TRY(sp_json_get_text(data, "level", &level));
        SP_TRY(sp_json_get_int(data, "bptt", &m->bptt));
        m->chars = strcmp(level, "char") == 0;
    }
    SP_TRY(read_size(data, "classes", SIZE_LIMIT, &m->classes));
    return read_names(data, m);
}

static sp_err read_body(const sp_json_value *root, sp_manifest *m)
{
    const sp_json_value *state;
    const char *version, *stage;
    int64_t format;

    SP_TRY(sp_json_get_int(root, "format", &format));
    SP_TRY(sp_json_get_text(root, "sprat", &version));
    if (format < 1 || format > SP_CHECKPOINT_FORMAT)
        return sp_fail(SP_EFORMAT,
                       "%s: written by sprat %s in checkpoint format %lld, "
                       "this is sprat %s, which reads formats 1 to %d: use "
                       "that version",
                       root->where, version, (long long)format, SP_VERSION,
                       SP_CHECKPOINT_FORMAT);
    SP_TRY(sp_json_get_text(root, "stage", &stage));
    m->low = strcmp(stage, stage_low) == 0;
    if (!m->low && strcmp(stage, stage_full) != 0)
        return sp_fail(SP_EFORMAT,
                       "%s: its program stage is \"%s\", this version knows "
                       "\"%s\" and \"%s\"",
                       root->where, stage, stage_full, stage_low);
    SP_TRY(sp_json_get(root, "state", SP_JSON_OBJECT, &state));
    SP_TRY(sp_train_state_read(state, &m->state));
    if (!m->low && m->state.switched >= 0)
        return sp_fail(SP_EFORMAT,
                       "%s: its program stage is \"%s\", but it has been "
                       "switched",
                       root->where, stage_full);
    SP_TRY(sp_autorank_read(root, &m->autorank));
    SP_TRY(sp_json_get_int(root, "batches", &m->batches));
    SP_TRY(sp_json_get_int(root, "batch_size", &m->batch));
    SP_TRY(read_data(root, m));
    SP_TRY(read_ranks(root, format, m));
    SP_TRY(read_text(root, "isa", &m->isa));
    SP_TRY(read_winograd(root, m));
    SP_TRY(read_text(root, "optimizer", &m->optimizer));
    return read_text(root, "config", &m->config);
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
    if (e != SP_OK)
        sp_manifest_free(m);
    sp_json_doc_free(doc);
    free(bytes);
    free(path);
    return e;
}

const sp_autorank *sp_manifest_ranks(const sp_manifest *m)
{
    return m->low && m->autorank.chosen ? &m->autorank : NULL;
}

void sp_manifest_free(sp_manifest *m)
{
    for (int i = 0; m->class_names && i < m->classes; i++)
        free(m->class_names[i]);
    free(m->class_names);
    sp_autorank_free(&m->autorank);
    free(m->rank_stamps);
    free(m->compressor);
    free(m->config);
    free(m->isa);
    free(m->winograd);
    free(m->optimizer);
    *m = (sp_manifest){ 0 };
}
