/* What is generated from the tables of verbs and keys. */
#ifndef SPRAT_TOOLS_GENERATE_H
#define SPRAT_TOOLS_GENERATE_H

#include <stdio.h>

#include "sprat.h"

/* ---- Pages (generate_man.c, generate_config.c) --------------------------- */

/* sprat(1), the page of a verb, and sprat-config(5). */
void sp_man_program(FILE *out);
void sp_man_verb(const sp_verb *v, FILE *out);
void sp_man_config(const sp_registry *r, FILE *out);

/* docs/config.md. */
void sp_config_page(const sp_registry *r, FILE *out);

/* Text in a manual page: what roff would take for its own is escaped, and what
 * stands between backquotes is bold. */
void sp_roff(FILE *out, const char *text);

/* The line with which a page begins; the name in lower case. */
void sp_roff_title(FILE *out, const char *name, int chapter);

/* ---- Completions (generate_shells.c) ------------------------------------- */

/* What an operand or the value of an option may be. */
typedef enum sp_word {
    SP_WORD_ANY,
    SP_WORD_FILE,
    SP_WORD_FOLDER,
    SP_WORD_YAML, /* a file of it */
    SP_WORD_KIND, /* what `sprat list` takes */
    SP_WORD_OP,
    SP_WORDS
} sp_word;

/* The i-th operand of a verb; the last kind of word goes on. SP_WORD_ANY: it
 * takes no more. */
sp_word sp_word_of(const sp_verb *v, int i);

/* The value of an option; *choices are words it may be, with blanks between
 * them, or NULL. */
sp_word sp_word_of_flag(const sp_flag *f, const char **choices);

/* Call `each` with every key, as "section.key", in the order of the sections,
 * once for each name. `values` are what it may be, with blanks between them, or
 * "". */
void sp_each_key(const sp_registry *r,
                 void (*each)(FILE *out, const char *key, const char *values,
                              const char *help),
                 FILE *out);

void sp_complete_bash(const sp_registry *r, FILE *out);
void sp_complete_zsh(const sp_registry *r, FILE *out);
void sp_complete_fish(const sp_registry *r, FILE *out);

#endif
