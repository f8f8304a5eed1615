/* sprat compare. */
#include <stdio.h>

#include "sprat.h"
#include "sprat/report.h"

static int compare(const sp_args *a)
{
    sp_compare_opt o = { .a = a->words[0],
                         .b = a->words[1],
                         .json = sp_args_flag(a, "json") != NULL,
                         .out = stdout };
    bool differ;
    sp_err e = sp_compare(&o, &differ);

    if (e != SP_OK)
        return sp_refuse(e);
    /* What nobody was told is no answer, and not the one that they differ;
     * main() says why. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return SP_EXIT_USAGE;
    return differ ? SP_EXIT_FAILED : SP_EXIT_DONE;
}

const sp_verb sp_verb_compare = {
    .name = "compare",
    .words = "A B",
    .least = 2,
    .most = 2,
    .help = "tell how two runs, or two checkpoints, differ",
    .examples =
        "Two run folders: settings, versions, the first step whose parameters\n"
        "differ, scores, bytes, speed. Two checkpoints, as "
        "RUN/checkpoints/last:"
        "\nthe largest difference of each tensor. Status 0: the results are "
        "the\n"
        "same; 1: they differ; 2: they could not be compared.\n\n"
        "  sprat compare runs/resnet20 runs/resnet20-dgc\n"
        "  sprat compare runs/a/checkpoints/last runs/b/checkpoints/last "
        "--json\n",
    .flags = { { "json", NULL, "print one JSON object and nothing else" } },
    .run = compare,
};
