/* Two files of weights, tensor by tensor. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"
#include "report/compare.h"

/* What became of one tensor. */
typedef enum fate { SAME, DIFFERENT, SHAPED_OTHERWISE, ONLY_A, ONLY_B } fate;

typedef struct tensor_row {
    const char *name;
    fate fate;
    double largest;     /* absolute difference; NAN: one is not finite */
    uint64_t different; /* elements */
    uint64_t elements;
} tensor_row;

typedef struct weights {
    sp_st_file *file[2];
    sp_text rows; /* tensor_row */
    uint64_t counts[ONLY_B + 1];
    double largest;
} weights;

static bool same_shape(const sp_st_tensor *a, const sp_st_tensor *b)
{
    return a->type == b->type && a->ndim == b->ndim &&
           memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims) == 0;
}

static double distance(const sp_st_tensor *t, const void *a, const void *b,
                       uint64_t i)
{
    if (t->type == SP_ST_F32) {
        const float *x = a, *y = b;
        return fabs((double)x[i] - (double)y[i]);
    } else {
        const int64_t *x = a, *y = b;
        return fabs((double)x[i] - (double)y[i]);
    }
}

static void measure(tensor_row *row, const sp_st_tensor *t, const void *a,
                    const void *b)
{
    size_t size = t->type == SP_ST_F32 ? 4 : 8;

    row->elements = t->bytes / size;
    for (uint64_t i = 0; i < row->elements; i++) {
        double d;
        if (memcmp((const char *)a + i * size, (const char *)b + i * size,
                   size) == 0)
            continue;
        row->different++;
        d = distance(t, a, b, i);
        if (!(d <= row->largest)) /* also when d is NAN, and then it stays */
            row->largest = isnan(row->largest) ? row->largest : d;
    }
    row->fate = row->different > 0 ? DIFFERENT : SAME;
}

static sp_err compare_tensor(const weights *w, const sp_st_tensor *a,
                             const sp_st_tensor *b, tensor_row *row)
{
    void *x = malloc(a->bytes ? a->bytes : 1);
    void *y = malloc(a->bytes ? a->bytes : 1);
    sp_err e = x && y
                   ? SP_OK
                   : sp_fail(SP_ENOMEM, "out of memory for tensor %s", a->name);

    if (e == SP_OK)
        e = sp_st_read(w->file[0], a, x);
    if (e == SP_OK)
        e = sp_st_read(w->file[1], b, y);
    if (e == SP_OK)
        measure(row, a, x, y);
    free(x);
    free(y);
    return e;
}

static void add(weights *w, const tensor_row *row)
{
    w->counts[row->fate]++;
    if (!(row->largest <= w->largest) && !isnan(w->largest))
        w->largest = row->largest;
    sp_text_put(&w->rows, row, sizeof *row);
}

static sp_err compare_all(weights *w)
{
    const sp_st_tensor *t;

    for (size_t i = 0; (t = sp_st_at(w->file[0], i)); i++) {
        const sp_st_tensor *other = sp_st_find(w->file[1], t->name);
        tensor_row row = { .name = t->name, .fate = ONLY_A };
        if (other && !same_shape(t, other))
            row.fate = SHAPED_OTHERWISE;
        else if (other)
            SP_TRY(compare_tensor(w, t, other, &row));
        add(w, &row);
    }
    for (size_t i = 0; (t = sp_st_at(w->file[1], i)); i++)
        if (!sp_st_find(w->file[0], t->name))
            add(w, &(tensor_row){ .name = t->name, .fate = ONLY_B });
    return sp_text_check(&w->rows);
}

static size_t row_count(const weights *w)
{
    return w->rows.size / sizeof(tensor_row);
}

static const char *const fates[] = { "same", "different", "shape", "only_a",
                                     "only_b" };

static void tell_text(const weights *w, const sp_compare_opt *o, bool differ)
{
    const tensor_row *rows = (const void *)w->rows.bytes;

    fprintf(o->out, "a: %s\nb: %s\n", o->a, o->b);
    for (size_t i = 0; i < row_count(w); i++) {
        const tensor_row *r = &rows[i];
        if (r->fate == DIFFERENT)
            fprintf(o->out,
                    "  %-36s differs by up to %-10.4g in %llu of %llu "
                    "elements\n",
                    r->name, r->largest, (unsigned long long)r->different,
                    (unsigned long long)r->elements);
        else if (r->fate != SAME)
            fprintf(o->out, "  %-36s %s\n", r->name,
                    r->fate == SHAPED_OTHERWISE ? "has another type or shape"
                    : r->fate == ONLY_A         ? "only in a"
                                                : "only in b");
    }
    fprintf(o->out, "tensors: %llu the same bits, %llu different",
            (unsigned long long)w->counts[SAME],
            (unsigned long long)(row_count(w) - w->counts[SAME]));
    if (w->counts[DIFFERENT] > 0)
        fprintf(o->out, "; largest difference %.6g", w->largest);
    fprintf(o->out, "\nresults: %s\n", differ ? "they differ" : "the same");
}

static sp_err tell_json(const weights *w, const sp_compare_opt *o, bool differ)
{
    const tensor_row *rows = (const void *)w->rows.bytes;
    sp_json j = { 0 };

    sp_json_open(&j, NULL);
    sp_json_text(&j, "a", o->a);
    sp_json_text(&j, "b", o->b);
    sp_json_bool(&j, "differ", differ);
    sp_json_number(&j, "largest_difference", w->largest);
    sp_json_list(&j, "tensors");
    for (size_t i = 0; i < row_count(w); i++) {
        sp_json_open(&j, NULL);
        sp_json_text(&j, "name", rows[i].name);
        sp_json_text(&j, "is", fates[rows[i].fate]);
        if (rows[i].fate == DIFFERENT || rows[i].fate == SAME) {
            sp_json_number(&j, "largest_difference", rows[i].largest);
            sp_json_int(&j, "different", (int64_t)rows[i].different);
            sp_json_int(&j, "elements", (int64_t)rows[i].elements);
        }
        sp_json_close(&j);
    }
    sp_json_close(&j);
    sp_json_close(&j);
    return sp_tell_finish(&j, o->out);
}

sp_err sp_compare_weights(const sp_compare_opt *o, const char *a, const char *b,
                          bool *differ)
{
    weights w = { 0 };
    sp_err e = sp_st_open(&w.file[0], a);

    if (e == SP_OK)
        e = sp_st_open(&w.file[1], b);
    if (e == SP_OK)
        e = compare_all(&w);
    if (e == SP_OK) {
        *differ = w.counts[SAME] != row_count(&w);
        if (o->json)
            e = tell_json(&w, o, *differ);
        else
            tell_text(&w, o, *differ);
    }
    sp_text_free(&w.rows);
    sp_st_close(w.file[0]);
    sp_st_close(w.file[1]);
    return e;
}
