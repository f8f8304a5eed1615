/* TensorBoard's event files: one, RUN/tensorboard/events.out.tfevents.N.sprat,
 * whose records each hold an Event message. N is the time in seconds at which
 * it was made, or more, so that a later file comes behind the one that it
 * replaces: TensorBoard reads a folder's files in the order of their names.
 *
 *   record  = length (8 bytes), masked CRC of it (4), Event, masked CRC of that
 *   Event   : 1 wall_time (double), 2 step, 3 file_version, 5 Summary,
 *             7 SessionLog
 *   Summary : 1 Value (repeated);  Value : 1 tag, 2 simple_value (float)
 *   SessionLog : 1 status, 1 for START
 *
 * A START at step 0 behind the file's version tells a TensorBoard that has the
 * file before this one open to forget what it has read there.
 *
 * Source: TensorFlow's event.proto and summary.proto; "TFRecord and
 *         tf.train.Example" on the framing.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/little.h"
#include "base/protobuf.h"
#include "train/metrics.h"
#include "train/sinks.h"

#define NAME "events.out.tfevents."

/* ---- Records ------------------------------------------------------------- */

/* A CRC of what has CRCs in it would be weak: they are stored otherwise. */
static uint32_t masked_crc(const void *bytes, size_t n)
{
    uint32_t crc = sp_crc32c(bytes, n);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_record(sp_text *out, const sp_text *event)
{
    uint8_t head[12], tail[4];

    sp_little_put(head, 8, event->size);
    sp_little_put(head + 8, 4, masked_crc(head, 8));
    sp_little_put(tail, 4, masked_crc(event->bytes, event->size));
    sp_text_put(out, head, sizeof head);
    sp_text_put(out, event->bytes, event->size);
    sp_text_put(out, tail, sizeof tail);
    out->failed |= event->failed;
}

/* ---- Events -------------------------------------------------------------- */

/* What a step's values are called. Those of an epoch are "epoch/KEY", but
 * valid_loss is "valid/loss", and so on; those of its time "time/KEY". */
static const struct {
    const char *key, *tag;
} step_tags[] = {
    { "lr", "lr" },
    { "train_loss", "train/loss" },
    { "train_top1", "train/top1" },
    { "grad_norm", "train/grad_norm" },
    { "items_per_s", "train/items_per_s" },
    { "packet_bytes", "bytes/packet" },
    { "mpi_bytes", "bytes/mpi" },
    { "net_bytes", "bytes/net" },
};

enum { TAG_ROOM = 64 };

static const char *tag_of_step(const char *key)
{
    for (size_t i = 0; i < sizeof step_tags / sizeof *step_tags; i++)
        if (strcmp(step_tags[i].key, key) == 0)
            return step_tags[i].tag;
    return NULL;
}

static void name_tag(char out[TAG_ROOM], const char *kind, const char *key)
{
    static const char *const parts[] = { "valid", "test" };
    const char *known = strcmp(kind, "step") == 0 ? tag_of_step(key) : NULL;

    snprintf(out, TAG_ROOM, "%s/%s", kind, key);
    if (known)
        snprintf(out, TAG_ROOM, "%s", known);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(parts[i]);
        if (strncmp(key, parts[i], n) == 0 && key[n] == '_')
            snprintf(out, TAG_ROOM, "%s/%s", parts[i], key + n + 1);
    }
}

/* Keys that say where the run stands, as the event does. */
static bool of_event(const sp_json_value *v)
{
    return strcmp(v->key, "step") == 0 || strcmp(v->key, "epoch") == 0 ||
           strcmp(v->key, SP_WALL_TIME) == 0;
}

static void put_scalar(sp_text *summary, const char *kind,
                       const sp_json_value *v)
{
    sp_text value = { 0 };
    char tag[TAG_ROOM];

    name_tag(tag, kind, v->key);
    sp_pb_string(&value, 1, tag);
    sp_pb_float(&value, 2,
                v->kind == SP_JSON_NULL ? INFINITY : (float)v->number);
    sp_pb_message(summary, 1, &value);
    sp_text_free(&value);
}

static void begin(const sp_sink *s, sp_text *out)
{
    sp_text event = { 0 }, start = { 0 };

    (void)s;
    sp_pb_double(&event, 1, sp_time_of_day());
    sp_pb_string(&event, 3, "brain.Event:2");
    put_record(out, &event);
    sp_text_free(&event);
    sp_pb_int(&start, 1, 1);
    sp_pb_double(&event, 1, sp_time_of_day());
    sp_pb_int(&event, 2, 0);
    sp_pb_message(&event, 7, &start);
    put_record(out, &event);
    sp_text_free(&event);
    sp_text_free(&start);
}

/* Lines that a version without times of day has written get the present one. */
static double time_of(const sp_json_value *line)
{
    const sp_json_value *v = sp_json_find(line, SP_WALL_TIME);

    return v && v->kind == SP_JSON_NUMBER ? v->number : sp_time_of_day();
}

static void put_line(const sp_sink *s, sp_text *out, const sp_json_value *line)
{
    const sp_json_value *kind = sp_json_find(line, "kind");
    const sp_json_value *step = sp_json_find(line, "step");
    sp_text event = { 0 }, summary = { 0 };

    (void)s;
    if (!kind || kind->kind != SP_JSON_TEXT || !step || !step->whole)
        return;
    for (const sp_json_value *v = line->first; v; v = v->next)
        if ((v->kind == SP_JSON_NUMBER || v->kind == SP_JSON_NULL) &&
            !of_event(v))
            put_scalar(&summary, kind->text, v);
    sp_pb_double(&event, 1, time_of(line));
    sp_pb_int(&event, 2, step->integer);
    sp_pb_message(&event, 5, &summary);
    put_record(out, &event);
    sp_text_free(&summary);
    sp_text_free(&event);
}

/* ---- The file ------------------------------------------------------------ */

static bool wanted(const sp_log_cfg *log) { return log->tensorboard; }

/* The number of one of these files, or of what a writer that was killed left of
 * one; -1: it is another. */
static int64_t number_of(const char *name)
{
    const size_t n = sizeof NAME - 1;
    char *end;
    long long number;

    if (strncmp(name, NAME, n) != 0 || name[n] < '0' || name[n] > '9')
        return -1;
    errno = 0;
    number = strtoll(name + n, &end, 10);
    if (strcmp(end, ".sprat") != 0 && strcmp(end, ".sprat.tmp") != 0)
        return -1;
    return errno == 0 && number < INT64_MAX ? (int64_t)number : -1;
}

/* The largest number there is, but for that of `but`; those below are removed
 * if `remove_them`. */
static sp_err look(const char *folder, int64_t but, bool remove_them,
                   int64_t *largest)
{
    DIR *dir = opendir(folder);
    sp_err e = dir ? SP_OK : sp_io_fail("read", folder);

    *largest = -1;
    for (struct dirent *d; e == SP_OK && (d = readdir(dir));) {
        int64_t number = number_of(d->d_name);
        char *path;

        if (number < 0 || number == but)
            continue;
        *largest = number > *largest ? number : *largest;
        if (!remove_them)
            continue;
        path = sp_path(folder, "%s", d->d_name);
        if (!path)
            e = sp_fail(SP_ENOMEM, "out of memory");
        else if (remove(path) != 0)
            e = sp_io_fail("remove", path);
        free(path);
    }
    if (dir)
        closedir(dir);
    return e;
}

static sp_err place(const sp_sink *s, const char *run, char **path)
{
    char *folder = sp_path(run, "%s", s->name);
    int64_t number = (int64_t)sp_time_of_day(), largest = 0;
    sp_err e =
        folder ? sp_dir_make(folder) : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK)
        e = look(folder, -1, false, &largest);
    if (e == SP_OK) {
        number = largest < number ? number : largest + 1;
        *path = sp_path(folder, NAME "%010" PRId64 ".sprat", number);
        if (!*path)
            e = sp_fail(SP_ENOMEM, "out of memory");
    }
    free(folder);
    return e;
}

static sp_err settle(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    char *folder = sp_copy(path, (size_t)(name - path));
    int64_t largest;
    sp_err e = folder ? look(folder, number_of(name), true, &largest)
                      : sp_fail(SP_ENOMEM, "out of memory");

    free(folder);
    return e;
}

const sp_sink sp_sink_tensorboard = {
    .name = "tensorboard",
    .wanted = wanted,
    .place = place,
    .begin = begin,
    .line = put_line,
    .settle = settle,
};
