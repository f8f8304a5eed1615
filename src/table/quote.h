/* Foreign text within Markdown, LaTeX and CSV. Control characters, line ends
 * too, become spaces. */
#ifndef SP_TABLE_QUOTE_H
#define SP_TABLE_QUOTE_H

#include "base/text.h"

void sp_quote_markdown(sp_text *out, const char *text);
void sp_quote_latex(sp_text *out, const char *text);

/* The target of a Markdown link. */
void sp_quote_link(sp_text *out, const char *path);

/* A field, in quotes where it needs them. Source: RFC 4180, section 2. */
void sp_quote_csv(sp_text *out, const char *text);

#endif
