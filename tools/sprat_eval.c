/* sprat eval, sprat verify. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dist/agree.h"
#include "sprat.h"
#include "sprat/train.h"

static const char *const parts[] = {
    [SP_PART_TRAIN] = "train",
    [SP_PART_VALID] = "valid",
    [SP_PART_TEST] = "test",
};

static const char *part_next(const void *unused, size_t i)
{
    (void)unused;
    return i < sizeof parts / sizeof *parts ? parts[i] : NULL;
}

/* The part of that name, or -1. */
static int part_find(const char *name)
{
    for (size_t i = 0; part_next(NULL, i); i++) {
        if (strcmp(parts[i], name) == 0)
            return (int)i;
    }
    return -1;
}

static int print_scores(const sp_args *a, const char *split,
                        const char *checkpoint, const sp_scores *s)
{
    sp_json j = { 0 };

    if (!sp_args_flag(a, "json")) {
        bool text = isnan(s->top1);

        printf("%s of %s: %zu %s, loss %.4f, ", split, checkpoint, s->count,
               text ? "targets" : "samples", s->loss);
        if (text)
            printf("perplexity %.2f", s->ppl);
        else
            printf("top-1 %.2f %%", s->top1);
        if (!isnan(s->top5))
            printf(", top-5 %.2f %%", s->top5);
        printf("\n");
        return SP_EXIT_DONE;
    }
    sp_json_open(&j, NULL);
    sp_json_text(&j, "split", split);
    sp_json_text(&j, "checkpoint", checkpoint);
    sp_json_int(&j, "count", (int64_t)s->count);
    sp_json_number(&j, "loss", s->loss);
    if (isnan(s->top1))
        sp_json_number(&j, "ppl", s->ppl);
    else
        sp_json_number(&j, "top1", s->top1);
    if (!isnan(s->top5))
        sp_json_number(&j, "top5", s->top5);
    sp_json_close(&j);
    return sp_print_json(&j);
}

static int eval(const sp_args *a)
{
    const char *checkpoint = sp_args_flag(a, "checkpoint");
    const char *split = sp_args_flag(a, "split");
    sp_opened o = { 0 };
    sp_scores scores;
    sp_err e;
    int part;

    checkpoint = checkpoint ? checkpoint : "last";
    split = split ? split : "test";
    part = part_find(split);
    if (part < 0)
        return sp_unknown("split", split, part_next, NULL);
    e = sp_opened_registry(&o);
    if (e == SP_OK)
        e = sp_eval(o.registry, a->words[0], checkpoint, (sp_part)part,
                    &scores);
    sp_opened_free(&o);
    return e == SP_OK ? print_scores(a, split, checkpoint, &scores)
                      : sp_refuse(e);
}

static int verify(const sp_args *a)
{
    sp_opened o = { 0 };
    int compared;
    long steps;
    sp_err e;

    if (!sp_args_count(a, "steps", 200, SP_COUNT_MAX, &steps))
        return SP_EXIT_USAGE;
    e = sp_agree(a->comm, sp_opened_registry(&o));
    if (e == SP_OK)
        e = sp_verify(o.registry, a->words[0], steps, a->comm, &compared);
    sp_opened_free(&o);
    if (e != SP_OK) {
        sp_refuse_all(a, e);
        return e == SP_ENUMERIC ? SP_EXIT_FAILED : SP_EXIT_USAGE;
    }
    if (sp_comm_rank(a->comm) != 0)
        return SP_EXIT_DONE;
    printf("%s: %d parameter hash%s within the first %ld steps agree%s\n",
           a->words[0], compared, compared == 1 ? "" : "es", steps,
           compared == 1 ? "s" : "");
    return SP_EXIT_DONE;
}

const sp_verb sp_verb_eval = {
    .name = "eval",
    .words = "RUN",
    .least = 1,
    .most = 1,
    .help = "score a checkpoint of a run",
    .flags = {
        { "checkpoint", "NAME",
          "last (default), best, or a folder in RUN/checkpoints" },
        { "split", "PART", "test (default), valid or train" },
        { "json", NULL, "print one JSON object and nothing else" },
    },
    .examples =
        "Every sample counts exactly once; of text, every token but the "
        "first. The\nobject's keys: split checkpoint count loss top1 top5, "
        "for text ppl in place of\nthe last two; percentages from 0 to 100, "
        "top5 with more than 5 classes.\n\n"
        "  sprat eval runs/mine --checkpoint best\n"
        "  sprat eval runs/mine --split valid --json\n",
    .run = eval,
};

const sp_verb sp_verb_verify = {
    .name = "verify",
    .words = "RUN",
    .least = 1,
    .most = 1,
    .ranks = true,
    .help = "replay a run's first steps and compare parameter hashes",
    .flags = {
        { "steps", "N", "how many steps to replay (200)" },
    },
    .examples =
        "Status 0: this build, here and now, gives the same bits as the run "
        "had;\n1: it does not, and the first step that differs is named. A run of "
        "several\nranks is replayed by as many.\n\n"
        "  sprat verify runs/mine\n"
        "  sprat verify runs/mine --steps 1000\n"
        "  mpirun -n 4 sprat verify runs/of-four-ranks\n",
    .run = verify,
};
