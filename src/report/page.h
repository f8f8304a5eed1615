/* The page: one HTML file with everything in it. */
#ifndef SPRAT_REPORT_PAGE_H
#define SPRAT_REPORT_PAGE_H

#include "base/text.h"
#include "report/gallery.h"
#include "report/run.h"

/* Write the page of these runs and charts. `title` NULL: made of their names.
 * Errors: SP_ENOMEM. */
SP_MUST sp_err sp_page_write(sp_text *out, const sp_runs *runs,
                             const sp_gallery *g, const char *title);

/* ---- Its parts ----------------------------------------------------------- */

/* Results and setup of the runs, their warnings and what was left out
 * (summary.c). */
void sp_page_summary(sp_text *out, const sp_runs *runs);

/* Settings that differ, and all of each run (settings.c). */
void sp_page_settings(sp_text *out, const sp_runs *runs);

/* The style sheet and the script, without their tags (style.c). */
void sp_page_style(sp_text *out);
const char *sp_page_script(void);

/* The SHA-256 of a text as a content security policy wants it: base64, 44
 * letters and a 0. */
void sp_page_digest(char out[48], const char *text);

#endif
