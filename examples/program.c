/* Whole jobs as calls: trains as configured, then scores the best checkpoint.
 *   ./program CONFIG... [section.key=value ...]      into runs/program
 */
#include <sprat/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char run[] = "runs/program";

static sp_err train_and_score(sp_registry *r, const sp_config *c)
{
    sp_job job = { .run = run, .overwrite = true, .terminal = stdout };
    sp_scores s;

    SP_TRY(sp_train(c, &job));
    SP_TRY(sp_eval(r, run, "best", SP_PART_TEST, &s));
    printf("%zu test samples: loss %.4f, %.2f %% right\n", s.count, s.loss,
           s.top1);
    return SP_OK;
}

/* Words with a '=' are settings, as of the program sprat. */
static sp_err run_job(sp_registry *r, char **words, size_t count)
{
    const char **files = calloc(2 * count + 1, sizeof *files);
    const char **settings = files ? files + count : NULL;
    size_t file_count = 0, setting_count = 0;
    sp_config *c = NULL;
    sp_err e;

    if (!files)
        return sp_fail(SP_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (strchr(words[i], '='))
            settings[setting_count++] = words[i];
        else
            files[file_count++] = words[i];
    }
    e = sp_config_load(&c, r, files, file_count, settings, setting_count);
    if (e == SP_OK)
        e = train_and_score(r, c);
    sp_config_free(c);
    free(files);
    return e;
}

int main(int argc, char **argv)
{
    sp_registry *r;
    sp_err e;

    if (argc < 2) {
        fputs("usage: program CONFIG... [section.key=value ...]\n", stderr);
        return EXIT_FAILURE;
    }
    r = sp_registry_new();
    e = r ? run_job(r, argv + 1, (size_t)argc - 1)
          : sp_fail(SP_ENOMEM, "out of memory");
    if (e != SP_OK)
        fprintf(stderr, "program: %s\n", sp_last_error());
    sp_registry_free(r);
    return e == SP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
