/* Manual pages of the program and its verbs. */
#include <ctype.h>
#include <string.h>

#include "generate.h"

void sp_roff_title(FILE *out, const char *name, int chapter)
{
    fputs(".\\\" Generated from the program's tables; do not edit.\n.TH ", out);
    for (const char *c = name; *c; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, " %d \"\" \"sprat " SP_VERSION "\" \"Sprat\"\n", chapter);
}

void sp_roff(FILE *out, const char *text)
{
    bool bold = false, start = true;

    for (const char *c = text; *c; c++) {
        if (start && (*c == '.' || *c == '\''))
            fputs("\\&", out);
        start = *c == '\n';
        if (*c == '`') {
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fP", out);
        } else if (*c == '\\') {
            fputs("\\e", out);
        } else if (*c == '-') {
            fputs("\\-", out);
        } else if (*c == '~') {
            fputs("\\(ti", out);
        } else if (*c == '^') {
            fputs("\\(ha", out);
        } else {
            fputc(*c, out);
        }
    }
}

/* The first n bytes of a text. */
static void roff_part(FILE *out, const char *text, size_t n)
{
    char part[2048];

    while (n > 0) {
        size_t m = n < sizeof part ? n : sizeof part - 1;
        memcpy(part, text, m);
        part[m] = '\0';
        sp_roff(out, part);
        text += m;
        n -= m;
    }
}

/* Bytes of a text up to the next empty line, without the last line feed. */
static size_t paragraph(const char *text)
{
    const char *end = strstr(text, "\n\n");
    size_t n = end ? (size_t)(end - text) : strlen(text);

    return n > 0 && text[n - 1] == '\n' ? n - 1 : n;
}

/* Paragraphs; those that are indented keep their lines. `*begun`: something
 * stands in the section already. */
static void paragraphs(FILE *out, const char *text, const char *end,
                       bool *begun)
{
    while (text < end) {
        size_t n = paragraph(text);
        bool kept = text[0] == ' ';
        if (*begun)
            fputs(".PP\n", out);
        *begun = true;
        if (kept)
            fputs(".nf\n", out);
        roff_part(out, text, n);
        fputs(kept ? "\n.fi\n" : "\n", out);
        text += n;
        text += strspn(text, "\n");
    }
}

/* Where the examples begin: the last paragraph, if it is indented. */
static const char *examples_of(const char *text)
{
    const char *last = text;

    for (const char *at = text; (at = strstr(at, "\n\n"));)
        last = at += 2;
    return last[0] == ' ' ? last : text + strlen(text);
}

/* The bold word for word `VERB WORDS [section.key=value ...] [--flag VALUE]`.
 */
static void synopsis(FILE *out, const sp_verb *v)
{
    fprintf(out, ".SH SYNOPSIS\n.nh\n.ad l\n.B sprat %s\n", v->name);
    if (v->words[0]) {
        sp_roff(out, v->words);
        fputs("\\&\n", out); /* dots are no end of a sentence */
    }
    if (v->overrides)
        fputs("[section.key=value ...]\n", out);
    for (int i = 0; i < SP_FLAGS_MAX && v->flags[i].name; i++) {
        const sp_flag *f = &v->flags[i];
        fputs("[\\fB", out);
        sp_roff(out, sp_dashes(f->name));
        sp_roff(out, f->name);
        fputs("\\fP", out);
        if (f->value) {
            fputs("\\ \\fI", out);
            sp_roff(out, f->value);
            fputs("\\fP", out);
        }
        fputs("]\n", out);
    }
    fputs(".ad b\n.hy\n", out);
}

static void options(FILE *out, const sp_verb *v)
{
    fputs(".SH OPTIONS\n", out);
    for (int i = 0; i < SP_FLAGS_MAX && v->flags[i].name; i++) {
        const sp_flag *f = &v->flags[i];
        fputs(".TP\n\\fB", out);
        sp_roff(out, sp_dashes(f->name));
        sp_roff(out, f->name);
        fputs("\\fP", out);
        if (f->value) {
            fputs(" \\fI", out);
            sp_roff(out, f->value);
            fputs("\\fP", out);
        }
        fputs("\n", out);
        sp_roff(out, f->help);
        fputs("\n", out);
    }
    fputs(".TP\n\\fB\\-\\-help\\fP, \\fB\\-h\\fP\nsay how it is used\n"
          ".TP\n\\fB\\-\\-\\fP\nwhat follows are operands\n",
          out);
}

/* "A sentence." of "what it does". */
static void sentence(FILE *out, const char *help)
{
    char first[2] = { (char)toupper((unsigned char)help[0]), '\0' };

    sp_roff(out, first);
    sp_roff(out, help + 1);
    fputs(".\n", out);
}

void sp_man_verb(const sp_verb *v, FILE *out)
{
    const char *examples = examples_of(v->examples);
    char name[64];
    bool begun = true;

    snprintf(name, sizeof name, "sprat-%s", v->name);
    sp_roff_title(out, name, 1);
    fputs(".SH NAME\n", out);
    sp_roff(out, name);
    fputs(" \\- ", out);
    sp_roff(out, v->help);
    fputs("\n", out);
    synopsis(out, v);
    fputs(".SH DESCRIPTION\n", out);
    sentence(out, v->help);
    if (v->ranks)
        fputs("May be started on several ranks by a launcher such as\n"
              ".BR mpirun (1).\n",
              out);
    paragraphs(out, v->examples, examples, &begun);
    options(out, v);
    if (*examples) {
        begun = false;
        fputs(".SH EXAMPLES\n", out);
        paragraphs(out, examples, examples + strlen(examples), &begun);
    }
    fputs(".SH SEE ALSO\n.BR sprat (1),\n.BR sprat\\-config (5),\n"
          ".BR sprat\\-run (5)\n",
          out);
}

static void statuses(FILE *out)
{
    static const char *const text[] = {
        "done", "the run failed",
        "wrong usage, configuration or data, found before the first step",
        "stopped on request, after saving",
        "the loss or a gradient is not finite"
    };

    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        fprintf(out, ".TP\n.B %zu\n%s\n", i, text[i]);
}

void sp_man_program(FILE *out)
{
    const sp_verb *v;

    sp_roff_title(out, "sprat", 1);
    fputs(".SH NAME\nsprat \\- trains neural networks on CPUs\n"
          ".SH SYNOPSIS\n.B sprat\n.I verb\n[argument ...]\n.br\n"
          ".B sprat help\n[\\fIverb\\fP]\n"
          ".SH DESCRIPTION\nSprat trains image classifiers and language "
          "models from configuration files, on one machine or on several over "
          "MPI, with gradients as they are or compressed.\n"
          "Each verb has a page of its own.\n.SH VERBS\n",
          out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++) {
        fprintf(out, ".TP\n.BR sprat\\-%s (1)\n", v->name);
        sp_roff(out, v->help);
        fputs("\n", out);
    }
    statuses(out);
    fputs(".SH ENVIRONMENT\n.TP\n.B SPRAT_DATA\nwhere data sets are looked "
          "for, after the present folder and before "
          "/usr/share/datasets\n"
          ".SH EXAMPLES\n.nf\n"
          "  sprat train configs/fashion/quickstart.yaml\n"
          "  sprat train configs/cifar10/resnet20.yaml configs/dgc.yaml "
          "optim.lr=0.05\n"
          "  mpirun \\-n 4 sprat train configs/cifar10/resnet20.yaml\n"
          ".fi\n.SH SEE ALSO\n.BR sprat\\-config (5),\n.BR sprat\\-run (5),\n"
          ".BR sprat\\-train.h (3)\n",
          out);
}
