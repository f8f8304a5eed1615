/* sprat import. */
#include <stdio.h>

#include "base/outputs.h"
#include "sprat.h"
#include "sprat/convert.h"

static void tell(const sp_import_opt *opt, const sp_import_result *r)
{
    printf("%s: %d arrays of %s", opt->out, r->imported, opt->file);
    if (r->anew)
        printf(", %d started anew", r->anew);
    if (r->folded)
        printf(", %d biases taken in by others", r->folded);
    printf("\ntrain from them with model.init=%s\n", opt->out);
}

static int import(const sp_args *a)
{
    sp_import_opt opt = { .file = a->words[0],
                          .except = sp_args_flag(a, "except"),
                          .out = sp_args_flag(a, "o") };
    sp_import_result result;
    sp_opened o = { 0 };
    sp_err e;

    if (!opt.out) {
        sp_say("import: where to? Give -o FILE.safetensors");
        return SP_EXIT_USAGE;
    }
    e = sp_output_check(opt.out, a->words, a->word_count);
    if (e == SP_OK)
        e = sp_opened_registry(&o);
    if (e == SP_OK)
        e = sp_config_load(&o.config, o.registry, a->words + 1,
                           a->word_count - 1, a->overrides, a->override_count);
    if (e == SP_OK)
        e = sp_import(o.config, &opt, &result);
    sp_opened_free(&o);
    if (e != SP_OK)
        return sp_refuse(e);
    tell(&opt, &result);
    return SP_EXIT_DONE;
}

const sp_verb sp_verb_import = {
    .name = "import",
    .words = "FILE CONFIG...",
    .least = 2,
    .most = -1,
    .overrides = true,
    .help = "make another program's weights a file for model.init",
    .flags = {
        { "o", "FILE", "where to: a safetensors file" },
        { "except", "LAYERS",
          "names, apart by commas, of layers that start anew" },
    },
    .examples =
        "FILE: .safetensors; .npz; .pth, a state dict by torch.save(). All of "
        "the\nconfigured network must be in it, by PyTorch's names, and "
        "nothing else. Nothing\nin it is run. docs/sharing-weights.md tells "
        "more.\n\n"
        "  sprat import resnet50.pth configs/imagenet/resnet50.yaml "
        "-o r50.safetensors\n"
        "  sprat import resnet50.pth my.yaml --except fc -o r50.safetensors\n",
    .run = import,
};
