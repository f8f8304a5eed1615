/* sprat export. */
#include <stdio.h>
#include <string.h>

#include "sprat.h"
#include "sprat/convert.h"

static const char *form_next(const void *unused, size_t i)
{
    (void)unused;
    return sp_export_form_name(i);
}

/* The form of that name; NULL: that which the file's name tells. False: there
 * is none. */
static bool find_form(const char *name, sp_export_form *out)
{
    *out = SP_EXPORT_BY_NAME;
    for (size_t i = 0; name && sp_export_form_name(i); i++)
        if (strcmp(name, sp_export_form_name(i)) == 0)
            *out = (sp_export_form)(SP_EXPORT_BY_NAME + 1 + i);
    return !name || *out != SP_EXPORT_BY_NAME;
}

static int export(const sp_args *a)
{
    const char *checkpoint = sp_args_flag(a, "checkpoint");
    const char *form = sp_args_flag(a, "as");
    sp_export_opt opt = { .run = a->words[0],
                          .checkpoint = checkpoint ? checkpoint : "best",
                          .file = sp_args_flag(a, "o") };
    sp_opened o = { 0 };
    sp_err e;

    if (!find_form(form, &opt.form))
        return sp_unknown("format", form, form_next, NULL);
    if (!opt.file) {
        sp_say("export: where to? Give -o FILE");
        return SP_EXIT_USAGE;
    }
    e = sp_opened_registry(&o);
    if (e == SP_OK)
        e = sp_export(o.registry, &opt);
    sp_opened_free(&o);
    if (e != SP_OK)
        return sp_refuse(e);
    printf("%s: the weights of %s, checkpoint %s\n", opt.file, opt.run,
           opt.checkpoint);
    return SP_EXIT_DONE;
}

const sp_verb sp_verb_export = {
    .name = "export",
    .words = "RUN",
    .least = 1,
    .most = 1,
    .help = "write a run's weights for PyTorch, NumPy or ONNX",
    .flags = {
        { "o", "FILE", "where to: .safetensors, .npz or .onnx" },
        { "as", "FORMAT",
          "safetensors, npz or onnx, whatever the file's name" },
        { "checkpoint", "NAME",
          "best (default), last, or a folder in RUN/checkpoints" },
    },
    .examples =
        "safetensors and npz hold what PyTorch's load_state_dict() wants of "
        "the same\nnetwork: its names, axes and order of gates. ONNX, for "
        "images, is the network\nitself. docs/sharing-weights.md tells more."
        "\n\n"
        "  sprat export runs/mine -o mine.safetensors\n"
        "  sprat export runs/mine --checkpoint last -o mine.onnx\n",
    .run = export,
};
