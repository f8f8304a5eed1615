/* Text written by a trained model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/random.h"
#include "train/trained.h"

typedef struct sampler {
    const sp_sample_opt *opt;
    sp_session session;
    double *weight;  /* of every token, up to a common factor */
    bool line_start; /* the next token begins a line */
} sampler;

static const char *name_of(const sampler *s, int32_t token)
{
    return s->session.info.class_names[token];
}

static bool ends_line(const sampler *s, int32_t token)
{
    return strcmp(name_of(s, token), s->session.info.chars ? "\n" : SP_EOS) ==
           0;
}

/* What begins every text: the end of the line before, or where the vocabulary
 * has none, its first token. */
static int32_t first_token(const sampler *s)
{
    for (int32_t i = 0; i < s->session.info.classes; i++)
        if (ends_line(s, i))
            return i;
    return 0;
}

/* Show the model one token. */
static void step(sampler *s, int32_t token)
{
    const sp_program *p = &s->session.eval;
    sp_run run = { .n = 1, .t = 1, .weight = 1 };

    *(int32_t *)p->input->data = token;
    *(int32_t *)p->label->data = 0; /* the loss is not looked at */
    sp_carry_forward(&s->session.eval.carry, &run, 0);
    sp_carry_advance(&s->session.eval.carry);
}

/* weight[i] = e^((logit_i - largest) / temperature); *sum of all. */
static sp_err weigh(sampler *s, double *sum)
{
    const float *logits = s->session.eval.logits->data;
    double largest = -INFINITY, t = s->opt->temperature;

    for (int i = 0; i < s->session.info.classes; i++) {
        if (!isfinite(logits[i]))
            return sp_fail(SP_ENUMERIC,
                           "%s: the network's answer is not finite: take "
                           "another checkpoint",
                           s->opt->run);
        largest = fmax(largest, (double)logits[i]);
    }
    *sum = 0;
    for (int i = 0; i < s->session.info.classes; i++) {
        double below = (double)logits[i] - largest;
        s->weight[i] = t > 0 ? exp(below / t) : below == 0;
        *sum += s->weight[i];
    }
    return SP_OK;
}

/* The token at which the weights pass their share `u` in [0, 1). */
static sp_err draw(sampler *s, int64_t number, int32_t *token)
{
    double sum = 0, rest;
    uint32_t r[4];

    SP_TRY(weigh(s, &sum));
    sp_random(s->opt->seed, SP_FOR_SAMPLE, 0, (uint64_t)number, r);
    rest = sum * ((double)r[0] + (double)r[1] * 0x1p-32) * 0x1p-32;
    *token = -1;
    for (int i = 0; i < s->session.info.classes && (*token < 0 || rest >= 0);
         i++)
        if (s->weight[i] > 0) {
            *token = i;
            rest -= s->weight[i];
        }
    return SP_OK;
}

static void write_token(sampler *s, int32_t token)
{
    bool spaced = !s->session.info.chars && !s->line_start;
    bool end = ends_line(s, token);

    fprintf(s->opt->out, "%s%s", spaced && !end ? " " : "",
            end ? "\n" : name_of(s, token));
    s->line_start = end;
}

static sp_err write_prompt(sampler *s)
{
    const char *text = s->opt->prompt ? s->opt->prompt : "";
    int32_t *tokens = NULL;
    size_t count = 0;

    SP_TRY(sp_text_encode(&s->session.info, text, &tokens, &count));
    for (size_t i = 0; i < count; i++) {
        write_token(s, tokens[i]);
        step(s, tokens[i]);
    }
    free(tokens);
    return SP_OK;
}

static sp_err write_text(sampler *s)
{
    step(s, first_token(s));
    SP_TRY(write_prompt(s));
    for (int64_t i = 0; i < s->opt->tokens; i++) {
        int32_t token;

        SP_TRY(draw(s, i, &token));
        write_token(s, token);
        if (ferror(s->opt->out))
            return sp_fail(SP_EIO, "the text cannot be written");
        step(s, token);
    }
    if (!s->line_start)
        fputc('\n', s->opt->out);
    return SP_OK;
}

static sp_err open_sampler(sampler *s, const sp_trained *t)
{
    if (!t->checkpoint.manifest.text)
        return sp_fail(SP_ECONFIG,
                       "%s: was trained on images: `sprat predict` tells their "
                       "classes",
                       s->opt->run);
    SP_TRY(sp_trained_session(t, &s->session));
    if (!s->session.info.class_names)
        return sp_fail(SP_ECONFIG,
                       "%s: the tokens of data set %s stand for nothing that "
                       "could be written",
                       s->opt->run, s->session.set.set->entry.name);
    s->weight = malloc((size_t)s->session.classes * sizeof *s->weight);
    return s->weight ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

sp_err sp_sample(const sp_registry *r, const sp_sample_opt *o)
{
    sampler s = { .opt = o, .line_start = true };
    sp_trained t;
    sp_err e;

    if (!(o->temperature >= 0))
        return sp_fail(SP_EARG, "sample: temperature %g: must be 0 or more",
                       o->temperature);
    SP_TRY(sp_trained_open(&t, r, o->run, o->checkpoint));
    e = open_sampler(&s, &t);
    if (e == SP_OK)
        e = write_text(&s);
    free(s.weight);
    sp_session_close(&s.session);
    sp_trained_close(&t);
    return e;
}
