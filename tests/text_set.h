/* What the tests of the text set share: one over a scratch folder, and its
 * files. Failures end the test. */
#ifndef SPRAT_TESTS_TEXT_SET_H
#define SPRAT_TESTS_TEXT_SET_H

#include "fixture.h"

extern const sp_data_set sp_data_set_text;

#define SET (&sp_data_set_text)
#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })
#define LENGTH(a) ((int)(sizeof(a) / sizeof *(a)))
#define MARK "\xef\xbb\xbf"

/* The choices of `level` and `vocabulary`. */
enum { WORD, CHAR, TRAIN = 0 };

/* The folder; the set's settings; what is open, or NULL, and what it says. */
extern char *text_dir;
extern void *text_own, *text_state;
extern sp_data_info text_info;

/* Around each test. */
void text_set_up(void);
void text_tear_down(void);

/* Give a setting, a file, the three usual ones. */
void text_set(const char *key, double value);
void text_put(const char *name, const char *text);
void text_put_three(const char *train, const char *valid, const char *test);

/* Open the set, or find it refused. */
void text_opens(void);
void text_refused(sp_err code);

#endif
