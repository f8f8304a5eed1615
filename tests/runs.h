/* What the tests of training share: a small configuration, runs that stop or
 * die at a chosen line of their output, and comparisons of files. Failures end
 * the test. */
#ifndef SPRAT_TESTS_RUNS_H
#define SPRAT_TESTS_RUNS_H

#include "base/hash.h"
#include "fixture.h"
#include "sprat/train.h"

/* A scratch folder with "config.yaml": a perceptron on 96 synthetic images of
 * 4 classes, batches of 16, 3 epochs of 6 steps, a line every step. */
typedef struct runs {
    char *folder;
    sp_registry *registry;
} runs;

runs runs_new(void);
void runs_free(runs *r);

/* The configuration with `overrides` (ends with NULL; may be NULL). */
sp_config *runs_config(const runs *r, const char *const *overrides);

/* Overrides one behind the other; all end with NULL. */
enum { RUNS_MOST = 24 };

void runs_join(const char *out[RUNS_MOST], const char *const *a,
               const char *const *b);

/* Training is refused with SP_ECONFIG before step 0, with `word` in the text.
 */
void runs_refused(const runs *r, const char *const *overrides,
                  const char *word);

/* What a job does when it has written `lines` progress lines. */
typedef enum runs_end { RUNS_GO_ON, RUNS_STOP, RUNS_DIE } runs_end;

typedef struct runs_job {
    const char *run; /* in the scratch folder */
    const char *const *overrides;
    runs_end end;
    int lines;
    bool overwrite;
} runs_job;

sp_err runs_train(const runs *r, runs_job j);
sp_err runs_resume(const runs *r, runs_job j);

/* The same in a process of its own, which is killed; true if it was. */
bool runs_train_killed(const runs *r, runs_job j);

/* The path of a file of a run; valid until the fourth next call. */
const char *runs_path(const runs *r, const char *run, const char *file);

/* Whether both runs' last checkpoints have the same bits in this file. */
bool runs_same(const runs *r, const char *a, const char *b, const char *file);

/* The text of a file; free() frees. */
char *runs_read(const char *path);

/* A value of a run's result.json, as text: "done"; free() frees. */
char *runs_result(const runs *r, const char *run, const char *key);

/* Replace `from` by `to`, both of one length, in the manifest of a checkpoint
 * of a run, with a checksum that fits. */
void runs_forge(const runs *r, const char *run, const char *checkpoint,
                const char *from, const char *to);

/* Whether the last error's text contains `word`. */
bool runs_error(const char *word);

#endif
