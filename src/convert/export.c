/* From a run's checkpoint to a file for other programs. */
#include <stdlib.h>
#include <string.h>

#include "base/outputs.h"
#include "convert/npy.h"
#include "convert/onnx.h"
#include "convert/state_dict.h"
#include "convert/zip.h"
#include "sprat/convert.h"

/* A checkpoint, opened. */
typedef struct exported {
    sp_trained trained;
    sp_session session;
    sp_about about;
    const char *file;
} exported;

static sp_err open_state(const exported *x, sp_state_dict *d)
{
    return sp_state_dict_open(d, &x->session,
                              x->trained.checkpoint.manifest.state.step);
}

static sp_err write_safetensors(const exported *x)
{
    sp_st_content content = { .pairs = x->about.pairs,
                              .pair_count = x->about.count };
    sp_state_dict d;
    sp_err e;

    SP_TRY(open_state(x, &d));
    content.tensors = d.tensors;
    content.count = d.count;
    e = sp_st_write(x->file, &content, NULL);
    sp_state_dict_close(&d);
    return e;
}

/* NAME.npy; counters are the only whole numbers. */
static sp_err add_npy(sp_zip_out *z, const sp_st_tensor *t)
{
    sp_text head = { 0 };
    char *name = sp_path("", "%s.npy", t->name);
    sp_zip_part parts[2];
    size_t count = 1;
    sp_err e;

    for (int i = 0; i < t->ndim; i++)
        count *= (size_t)t->dims[i];
    sp_npy_write(&head, t->type == SP_ST_I64 ? "<i8" : "<f4", t->dims, t->ndim);
    parts[0] = (sp_zip_part){ head.bytes, head.size };
    parts[1] = (sp_zip_part){ t->data,
                              count * (t->type == SP_ST_I64 ? sizeof(int64_t)
                                                            : sizeof(float)) };
    e = name ? sp_text_check(&head) : sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        e = sp_zip_add(z, name, parts, 2);
    sp_text_free(&head);
    free(name);
    return e;
}

static sp_err write_npz(const exported *x)
{
    sp_zip_out *z = NULL;
    sp_state_dict d;
    sp_err e;

    SP_TRY(open_state(x, &d));
    e = sp_zip_begin(&z, x->file);
    for (size_t i = 0; e == SP_OK && i < d.count; i++)
        e = add_npy(z, &d.tensors[i]);
    if (e == SP_OK)
        e = sp_zip_end(z);
    else
        sp_zip_cancel(z);
    sp_state_dict_close(&d);
    return e;
}

static sp_err write_onnx(const exported *x)
{
    return sp_onnx_write(x->file, &x->session, &x->about);
}

static const struct form {
    const char *name;
    sp_err (*write)(const exported *x);
} forms[] = {
    [SP_EXPORT_SAFETENSORS - 1] = { "safetensors", write_safetensors },
    [SP_EXPORT_NPZ - 1] = { "npz", write_npz },
    [SP_EXPORT_ONNX - 1] = { "onnx", write_onnx },
};

enum { FORMS = sizeof forms / sizeof *forms };

const char *sp_export_form_name(size_t i)
{
    return i < FORMS ? forms[i].name : NULL;
}

static sp_err find_form(const sp_export_opt *o, const struct form **out)
{
    const char *dot = strrchr(o->file, '.');

    if (o->form != SP_EXPORT_BY_NAME) {
        *out = &forms[o->form - 1];
        return SP_OK;
    }
    for (int i = 0; dot && i < FORMS; i++)
        if (strcmp(dot + 1, forms[i].name) == 0) {
            *out = &forms[i];
            return SP_OK;
        }
    return sp_fail(SP_EARG,
                   "%s: its name does not tell as what to write it: let it "
                   "end in .safetensors, .npz or .onnx",
                   o->file);
}

sp_err sp_export(const sp_registry *r, const sp_export_opt *o)
{
    exported x = { .file = o->file };
    const struct form *form = NULL;
    sp_err e;

    SP_TRY(find_form(o, &form));
    SP_TRY(sp_output_check(o->file, NULL, 0));
    SP_TRY(sp_trained_open(&x.trained, r, o->run, o->checkpoint));
    e = sp_trained_session(&x.trained, &x.session);
    if (e == SP_OK)
        e = sp_about_open(&x.about, &x.trained, &x.session);
    if (e == SP_OK)
        e = form->write(&x);
    sp_about_close(&x.about);
    sp_session_close(&x.session);
    sp_trained_close(&x.trained);
    return e;
}
