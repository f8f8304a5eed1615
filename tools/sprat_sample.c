/* sprat sample. */
#include <stdio.h>

#include "sprat.h"
#include "sprat/train.h"

static int sample(const sp_args *a)
{
    sp_sample_opt opt = { .run = a->words[0],
                          .checkpoint = sp_args_flag(a, "checkpoint"),
                          .prompt = sp_args_flag(a, "prompt"),
                          .out = stdout };
    sp_opened o = { 0 };
    long tokens, seed;
    sp_err e;

    if (!sp_args_count(a, "tokens", 100, SP_COUNT_MAX, &tokens) ||
        !sp_args_number(a, "temperature", 1, &opt.temperature) ||
        !sp_args_count(a, "seed", 1, SP_COUNT_MAX, &seed))
        return SP_EXIT_USAGE;
    opt.tokens = tokens;
    opt.seed = (uint64_t)seed;
    e = sp_opened_registry(&o);
    if (e == SP_OK)
        e = sp_sample(o.registry, &opt);
    sp_opened_free(&o);
    return e == SP_OK ? SP_EXIT_DONE : sp_refuse(e);
}

const sp_verb sp_verb_sample = {
    .name = "sample",
    .words = "RUN",
    .least = 1,
    .most = 1,
    .help = "let a language model write",
    .flags = {
        { "prompt", "TEXT", "what the text begins with" },
        { "tokens", "N", "words or characters behind it (100)" },
        { "temperature", "T",
          "below 1: likelier words; 0: always the likeliest (1)" },
        { "seed", "S", "another text for every number from 1 on (1)" },
        { "checkpoint", "NAME",
          "best (default), last, or a folder in RUN/checkpoints" },
    },
    .examples =
        "The same options give the same text. Opens no data: the vocabulary "
        "is in the\ncheckpoint.\n\n"
        "  sprat sample runs/mine --tokens 200 --temperature 0.7\n"
        "  sprat sample runs/mine --prompt \"the company said\"\n",
    .run = sample,
};
