#include "config_sample.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

static const sp_key optim_keys[] = {
    { "lr", SP_FLOAT, offsetof(sample_optim, lr), "0.1", 0, 1000, "rate",
      NULL },
    { "weight_decay", SP_FLOAT, offsetof(sample_optim, decay), "1e-4", 0, 1,
      "per step", NULL },
    { "decay", SP_CHOICE, offsetof(sample_optim, scope), "all", 0, 0, "of what",
      "all|matrices" },
};
static const sp_key sgd_keys[] = {
    { "momentum", SP_FLOAT, offsetof(sample_sgd, momentum), "0.9", 0, 1, "",
      NULL },
    { "nesterov", SP_BOOL, offsetof(sample_sgd, nesterov), "no", 0, 0, "",
      NULL },
};
static const sp_key adam_keys[] = {
    { "beta", SP_FLOAT, offsetof(sample_adam, beta), "0.999", 0, 1, "", NULL },
    { "steps", SP_LIST, offsetof(sample_adam, steps), "[1, 2.5]", 0, 9, "",
      NULL },
};
static const sp_key train_keys[] = {
    { "epochs", SP_INT, offsetof(sample_train, epochs), "30", 1, 100000, "",
      NULL },
    { "offset", SP_INT, offsetof(sample_train, offset), "-7", 0, 0, "", NULL },
    { "note", SP_TEXT, offsetof(sample_train, note), "", 0, 0, "", NULL },
    { "at", SP_LIST, offsetof(sample_train, at), "[]", 0, 0, "", NULL },
};
static const sp_section model = { "model", "", "models", 0, NULL, 0 };
const sp_section sample_optim_section = { "optim",      "sgd",
                                          "optimizers", sizeof(sample_optim),
                                          optim_keys,   3 };
static const sp_section train = { "train",    NULL, NULL, sizeof(sample_train),
                                  train_keys, 4 };
static const sp_section *const sections[] = { &model, &train,
                                              &sample_optim_section };
static const sp_entry mlp = { "mlp", "layers", 0, NULL, 0 };
const sp_entry sample_sgd_entry = { "sgd", "", sizeof(sample_sgd), sgd_keys,
                                    2 };
const sp_entry sample_adam_entry = { "adam", "", sizeof(sample_adam), adam_keys,
                                     2 };

sp_registry *sample_registry;
static char folder[64];

void sample_setup(void)
{
    strcpy(folder, "/tmp/sprat-config-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    sample_registry = sp_registry_create(sections, 3);
    ck_assert_int_eq(sp_registry_add(sample_registry, "model", &mlp), SP_OK);
    ck_assert_int_eq(
        sp_registry_add(sample_registry, "optim", &sample_sgd_entry), SP_OK);
    ck_assert_int_eq(
        sp_registry_add(sample_registry, "optim", &sample_adam_entry), SP_OK);
}

void sample_teardown(void)
{
    sp_registry_free(sample_registry);
    ck_assert_int_eq(sp_dir_remove(folder), SP_OK);
}

void sample_put(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

sp_err sample_load(sp_config **c, const char *const *texts,
                   const char *const *arguments)
{
    static const char *const names[] = { "a.yaml", "b.yaml", "c.yaml" };
    size_t files = 0, count = 0;

    for (; texts[files]; files++)
        sample_put(names[files], texts[files], strlen(texts[files]));
    while (arguments && arguments[count])
        count++;
    return sp_config_load(c, sample_registry, names, files, arguments, count);
}

void sample_refused(const char *text, const char *lines)
{
    sp_config *c;

    ck_assert_int_eq(sample_load(&c, (const char *[]){ text, NULL }, NULL),
                     SP_ECONFIG);
    ck_assert_str_eq(sp_last_error(), lines);
}

void sample_accepted(sp_config **c, const char *text)
{
    sp_err e = sample_load(c, (const char *[]){ text, NULL }, NULL);

    ck_assert_msg(e == SP_OK, "%s", sp_last_error());
}
