/* Bytes of a whole run, from its epochs. */
#include "table/sent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "train/lines.h"

typedef struct sums {
    sp_run_sent sent;
    int64_t steps; /* of the epochs so far */
} sums;

static double number(const sp_json_value *line, const char *key)
{
    const sp_json_value *v = sp_json_find(line, key);

    return v && v->kind == SP_JSON_NUMBER ? v->number : NAN;
}

/* An epoch's mean counts as often as it has steps; one without, not at all. */
static void add(void *arg, const char *line, size_t n,
                const sp_json_value *value)
{
    const sp_json_value *kind = sp_json_find(value, "kind");
    const sp_json_value *step = sp_json_find(value, "step");
    sums *s = arg;
    double steps;

    (void)line;
    (void)n;
    if (!kind || kind->kind != SP_JSON_TEXT ||
        strcmp(kind->text, "epoch") != 0 || !step || !step->whole ||
        step->integer <= s->steps)
        return;
    steps = (double)(step->integer - s->steps);
    s->sent.packet += steps * number(value, "packet_bytes");
    s->sent.dense += steps * number(value, "dense_bytes");
    s->steps = step->integer;
}

sp_err sp_sent_in_run(const char *run, sp_run_sent *sent)
{
    char *path = sp_path(run, "metrics.jsonl");
    sums s = { 0 };
    sp_err e = path ? sp_lines_read(path, add, &s)
                    : sp_fail(SP_ENOMEM, "out of memory");

    sent->packet = s.steps > 0 ? s.sent.packet / (double)s.steps : NAN;
    sent->dense = s.steps > 0 ? s.sent.dense / (double)s.steps : NAN;
    free(path);
    return e;
}
