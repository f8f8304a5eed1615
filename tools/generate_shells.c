/* Completions for bash and zsh: tables that both read, and what each does with
 * them, which is in completion/. For fish all is in a table. */
#include <string.h>

#include "generate.h"
#include "sprat/op.h"
#include "sprat/train.h"

static const char *const words[SP_WORDS] = { "any",  "file", "folder",
                                             "yaml", "kind", "op" };

/* Within single quotes of a shell. */
static void quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (const char *c = text; *c; c++)
        fputs(*c == '\'' ? "'\\''" : (char[]){ *c, '\0' }, out);
    fputc('\'', out);
}

static void key_word(FILE *out, const char *key, const char *values,
                     const char *help)
{
    (void)values;
    (void)help;
    fprintf(out, " %s", key);
}

static void value_case(FILE *out, const char *key, const char *values,
                       const char *help)
{
    (void)help;
    if (*values)
        fprintf(out, "    %s) echo '%s' ;;\n", key, values);
}

static void lists(const sp_registry *r, FILE *out)
{
    const sp_verb *v;
    const sp_op *op;
    const sp_section *s;

    fputs("_sprat_verbs='", out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++)
        fprintf(out, "%s ", v->name);
    fputs("help'\n_sprat_ops='", out);
    for (int i = 0; (op = sp_op_at(i)); i++)
        fprintf(out, "%s%s", i ? " " : "", op->name);
    /* Of kinds the names of sections, which are words. */
    fputs("'\n_sprat_kinds='ops", out);
    for (size_t i = 0; (s = sp_registry_section(r, i)); i++)
        fprintf(out, " %s", s->name);
    fputs("'\n_sprat_keys='", out);
    sp_each_key(r, key_word, out);
    fputs("'\n\n_sprat_values() {\n  case $1 in\n", out);
    sp_each_key(r, value_case, out);
    fputs("  esac\n}\n", out);
}

static void about(FILE *out)
{
    const sp_verb *v;

    fputs("\n_sprat_about() {\n  printf '%s\\n'", out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++) {
        char text[256];
        snprintf(text, sizeof text, "%s:%s", v->name, v->help);
        fputs(" \\\n    ", out);
        quoted(out, text);
    }
    fputs(" \\\n    'help:tell more about a verb'\n}\n", out);
}

static void flags(FILE *out)
{
    const sp_verb *v;

    fputs("\n_sprat_flags() {\n  case $1 in\n", out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++) {
        fprintf(out, "    %s) echo '", v->name);
        for (int k = 0; k < SP_FLAGS_MAX && v->flags[k].name; k++)
            fprintf(out, "%s%s ", sp_dashes(v->flags[k].name),
                    v->flags[k].name);
        fputs("--help' ;;\n", out);
    }
    fputs("  esac\n}\n\n# The kind of an option's value, then values.\n"
          "_sprat_value_of() {\n  case $1 in\n",
          out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++)
        for (int k = 0; k < SP_FLAGS_MAX && v->flags[k].name; k++) {
            const sp_flag *f = &v->flags[k];
            const char *choices;
            sp_word w = sp_word_of_flag(f, &choices);
            if (f->value)
                fprintf(out, "    '%s %s%s') echo '%s%s%s' ;;\n", v->name,
                        sp_dashes(f->name), f->name, words[w],
                        choices ? " " : "", choices ? choices : "");
        }
    fputs("  esac\n}\n", out);
}

static void operands(FILE *out)
{
    const sp_verb *v;

    fputs("\n# The kinds of the first, second and any further operand, and "
          "whether keys may be set.\n_sprat_operands() {\n  case $1 in\n"
          "    help) echo verb any any ;;\n",
          out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++)
        fprintf(out, "    %s) echo %s %s %s%s ;;\n", v->name,
                words[sp_word_of(v, 0)], words[sp_word_of(v, 1)],
                words[sp_word_of(v, 2)], v->overrides ? " setting" : "");
    fputs("  esac\n}\n", out);
}

static void note(FILE *out)
{
    fputs("# Completion of sprat; generated from the program's tables.\n", out);
}

static void tables(const sp_registry *r, FILE *out)
{
    note(out);
    lists(r, out);
    about(out);
    flags(out);
    operands(out);
}

void sp_complete_bash(const sp_registry *r, FILE *out) { tables(r, out); }

void sp_complete_zsh(const sp_registry *r, FILE *out)
{
    fputs("#compdef sprat\n", out);
    tables(r, out);
}

/* ---- fish ---------------------------------------------------------------- */

/* What fish itself completes: files, folders, ... */
static const char *const fish_files[SP_WORDS] = {
    [SP_WORD_FILE] = "(__fish_complete_path)",
    [SP_WORD_FOLDER] = "(__fish_complete_directories)",
    [SP_WORD_YAML] = "(__fish_complete_suffix .yaml)",
};

static void fish_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == '\\')
            fputc('\\', out);
        fputc(*c, out);
    }
    fputc('\'', out);
}

/* "KEY=" and, of each value, "KEY=VALUE". */
static void fish_key(FILE *out, const char *key, const char *values,
                     const char *help)
{
    fprintf(out, "  printf '%%s\\t%%s\\n' %s= ", key);
    fish_quoted(out, help);
    fputc('\n', out);
    while (*values) {
        size_t n = strcspn(values, " ");
        fprintf(out, "  echo %s=%.*s\n", key, (int)n, values);
        values += n + (values[n] == ' ');
    }
}

static void fish_operand(const sp_verb *v, FILE *out)
{
    sp_word last = SP_WORD_ANY;

    for (int i = 0; i < 3; i++) {
        sp_word w = sp_word_of(v, i);
        if (w == last || w == SP_WORD_ANY)
            continue;
        last = w;
        fprintf(out,
                "complete -c sprat -n '__fish_seen_subcommand_from %s' -a ",
                v->name);
        if (fish_files[w])
            fprintf(out, "'%s'\n", fish_files[w]);
        else
            fprintf(out, "'(__sprat_%ss)'\n", words[w]);
    }
    if (v->overrides)
        fprintf(out,
                "complete -c sprat -n '__fish_seen_subcommand_from %s' "
                "-a '(__sprat_keys)'\n",
                v->name);
}

static void fish_flag(const sp_verb *v, const sp_flag *f, FILE *out)
{
    const char *choices;
    sp_word w = sp_word_of_flag(f, &choices);

    fprintf(out, "complete -c sprat -n '__fish_seen_subcommand_from %s' %s %s",
            v->name, f->name[1] ? "-l" : "-s", f->name);
    if (f->value)
        fputs(" -r", out);
    if (choices || fish_files[w])
        fprintf(out, " -a '%s%s%s'", choices ? choices : "",
                choices && fish_files[w] ? " " : "",
                fish_files[w] ? fish_files[w] : "");
    fputs(" -d ", out);
    fish_quoted(out, f->help);
    fputc('\n', out);
}

static void fish_functions(const sp_registry *r, FILE *out)
{
    const sp_section *s;
    const sp_op *op;

    fputs("function __sprat_keys\n", out);
    sp_each_key(r, fish_key, out);
    fputs("end\nfunction __sprat_ops\n  printf '%s\\n'", out);
    for (int i = 0; (op = sp_op_at(i)); i++)
        fprintf(out, " %s", op->name);
    fputs("\nend\nfunction __sprat_kinds\n  printf '%s\\n' ops", out);
    for (size_t i = 0; (s = sp_registry_section(r, i)); i++)
        fprintf(out, " %s", s->name);
    sp_each_key(r, key_word, out);
    fputs("\nend\ncomplete -c sprat -f\n", out);
}

void sp_complete_fish(const sp_registry *r, FILE *out)
{
    const sp_verb *v;

    note(out);
    fish_functions(r, out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++) {
        fprintf(out, "complete -c sprat -n __fish_use_subcommand -a %s -d ",
                v->name);
        fish_quoted(out, v->help);
        fputc('\n', out);
        for (int k = 0; k < SP_FLAGS_MAX && v->flags[k].name; k++)
            fish_flag(v, &v->flags[k], out);
        fish_operand(v, out);
    }
    fputs("complete -c sprat -n __fish_use_subcommand -a help "
          "-d 'tell more about a verb'\n",
          out);
}
