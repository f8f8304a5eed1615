/* Every key of a configuration: docs/config.md and sprat-config(5). */
#include <string.h>

#include "generate.h"

/* A cell of a table: a bar would end it. */
static void cell(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '|' || *c == '<' || *c == '>')
            fputc('\\', out);
        fputc(*c, out);
    }
}

static void table(FILE *out, const char *section, const sp_key *keys,
                  size_t count)
{
    char type[256];

    if (count == 0)
        return;
    fputs("| key | type | default | |\n| --- | --- | --- | --- |\n", out);
    for (size_t i = 0; i < count; i++) {
        sp_key_type(&keys[i], type, sizeof type);
        fprintf(out, "| `%s.%s` | ", section, keys[i].name);
        cell(out, type);
        fprintf(out, " | `%s` | ", sp_key_fallback(&keys[i]));
        cell(out, keys[i].help);
        fputs(" |\n", out);
    }
    fputs("\n", out);
}

static void section_page(const sp_registry *r, const sp_section *s, FILE *out)
{
    const sp_entry *e;

    fprintf(out, "## %s\n\n", s->name);
    if (s->fallback && *s->fallback)
        fprintf(out, "`%s.name` is one of those below; by default `%s`.\n\n",
                s->name, s->fallback);
    else if (s->fallback)
        fprintf(out, "`%s.name` is one of those below, and must be given.\n\n",
                s->name);
    table(out, s->name, s->keys, s->key_count);
    for (size_t i = 0; (e = sp_registry_at(r, s->name, i)); i++) {
        fprintf(out, "### %s.name: %s\n\n%s\n\n", s->name, e->name, e->help);
        table(out, s->name, e->keys, e->key_count);
    }
}

void sp_config_page(const sp_registry *r, FILE *out)
{
    const sp_section *s;

    fputs("# Every key of a configuration\n\n"
          "`sprat list` and `man sprat-config` tell the same. This page is "
          "generated from the\nprogram's key tables, by\n"
          "`build/tools/sprat-generate config >docs/config.md`; a test fails "
          "when it is not\ncurrent.\n\n"
          "A configuration is one or several YAML files that are laid over "
          "each other from\nleft to right, then arguments "
          "`section.key=value`; a list is written `[1, 2]`. What\n`name` "
          "selects in a section brings keys of its own. Bounds are allowed "
          "values.\n\n",
          out);
    for (size_t i = 0; (s = sp_registry_section(r, i)); i++)
        section_page(r, s, out);
}

static void man_keys(FILE *out, const char *section, const sp_key *keys,
                     size_t count)
{
    char type[256];

    for (size_t i = 0; i < count; i++) {
        sp_key_type(&keys[i], type, sizeof type);
        fprintf(out, ".TP\n\\fB%s.%s\\fP = ", section, keys[i].name);
        sp_roff(out, sp_key_fallback(&keys[i]));
        fputs(" (", out);
        sp_roff(out, type);
        fputs(")\n", out);
        sp_roff(out, keys[i].help);
        fputs("\n", out);
    }
}

static void man_section(const sp_registry *r, const sp_section *s, FILE *out)
{
    const sp_entry *e;

    fprintf(out, ".SH SECTION %s\n", s->name);
    man_keys(out, s->name, s->keys, s->key_count);
    for (size_t i = 0; (e = sp_registry_at(r, s->name, i)); i++) {
        bool usual = s->fallback && strcmp(s->fallback, e->name) == 0;
        fprintf(out, ".SS %s.name: %s%s\n", s->name, e->name,
                usual ? " (default)" : "");
        sp_roff(out, e->help);
        fputs("\n", out);
        man_keys(out, s->name, e->keys, e->key_count);
    }
}

void sp_man_config(const sp_registry *r, FILE *out)
{
    const sp_section *s;

    sp_roff_title(out, "sprat-config", 5);
    fputs(".SH NAME\nsprat\\-config \\- configurations of sprat\n"
          ".SH DESCRIPTION\nA configuration is one or several YAML files, "
          "which are laid over each other from left to right; then come "
          "arguments \\fBsection.key=value\\fP.\nA key that is unknown, "
          "repeated in a file, of a wrong type or out of range is an error "
          "with its place, and all are told at once.\nWhat \\fBname\\fP "
          "selects in a section brings keys of its own.\n.PP\n"
          "Keys are shown as key = default (type and bounds).\n.PP\n"
          ".nf\n  model: {name: mlp, hidden: [64]}\n"
          "  data: {name: idx, root: fashion\\-mnist, classes: 10}\n"
          "  train: {epochs: 2, batch: 100}\n"
          "  optim: {lr: 0.02, momentum: 0.9}\n.fi\n.PP\n"
          "\\fBsprat check\\fP finds what is wrong with one, "
          "\\fBsprat info\\fP tells what it needs.\n",
          out);
    for (size_t i = 0; (s = sp_registry_section(r, i)); i++)
        man_section(r, s, out);
    fputs(".SH SEE ALSO\n.BR sprat (1),\n.BR sprat\\-list (1),\n"
          ".BR sprat\\-check (1),\n.BR sprat\\-run (5)\n",
          out);
}
