/* A small world of settings for the tests of configurations: two optimizers
 * with keys of their own, and a section in which nothing is selected. Each
 * test runs in a folder of its own, which is its working folder. */
#ifndef SPRAT_TESTS_CONFIG_SAMPLE_H
#define SPRAT_TESTS_CONFIG_SAMPLE_H

#include "base/registry.h"
#include "sprat/config.h"

/* Section optim, whose name is sgd by default: lr, weight_decay, decay. */
typedef struct sample_optim {
    double lr, decay;
    int scope;
} sample_optim;

/* momentum, nesterov. */
typedef struct sample_sgd {
    double momentum;
    bool nesterov;
} sample_sgd;

/* beta, steps. */
typedef struct sample_adam {
    double beta;
    sp_list steps;
} sample_adam;

/* Section train: epochs, offset, note, at. */
typedef struct sample_train {
    int epochs, offset;
    const char *note;
    sp_list at;
} sample_train;

extern const sp_section sample_optim_section;
extern const sp_entry sample_sgd_entry, sample_adam_entry;

/* The least a file must say: section model has no default. */
#define MLP "model: {name: mlp}\n"

/* Made by sample_setup(), a checked fixture. */
extern sp_registry *sample_registry;
void sample_setup(void);
void sample_teardown(void);

void sample_put(const char *path, const char *bytes, size_t size);

/* Load up to three texts as a.yaml, b.yaml, c.yaml, then arguments; both lists
 * end with NULL. */
sp_err sample_load(sp_config **c, const char *const *texts,
                   const char *const *arguments);

/* Load one text, which must be right. */
void sample_accepted(sp_config **c, const char *text);

/* Load one text, which must be refused with exactly these lines. */
void sample_refused(const char *text, const char *lines);

#endif
