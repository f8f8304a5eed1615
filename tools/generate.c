/* Writes what is generated from the program's tables of verbs and keys, so that
 * none of it can be out of date:
 *   generate man FOLDER          sprat.1, sprat-VERB.1 and sprat-config.5
 *   generate config              docs/config.md
 *   generate bash|zsh [FILE]     completions; the file goes behind the tables
 *   generate fish
 * to standard output, but for `man`. */
#include "generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"

static bool open_page(FILE **f, const char *folder, const char *name)
{
    char *path = sp_path(folder, "%s", name);

    *f = path ? fopen(path, "w") : NULL;
    if (!*f)
        sp_say("cannot write %s", path ? path : name);
    free(path);
    return *f != NULL;
}

/* False: it could not be read or written, which is said. */
static bool close_page(FILE *f, const char *name)
{
    bool failed = ferror(f) != 0;

    if (fclose(f) == 0 && !failed)
        return true;
    sp_say("%s cannot be read or written", name);
    return false;
}

static bool man(const sp_registry *r, const char *folder)
{
    const sp_verb *v;
    char name[64];
    FILE *f;

    if (!open_page(&f, folder, "sprat.1"))
        return false;
    sp_man_program(f);
    if (!close_page(f, "sprat.1") || !open_page(&f, folder, "sprat-config.5"))
        return false;
    sp_man_config(r, f);
    if (!close_page(f, "sprat-config.5"))
        return false;
    for (size_t i = 0; (v = sp_verb_at(i)); i++) {
        snprintf(name, sizeof name, "sprat-%s.1", v->name);
        if (!open_page(&f, folder, name))
            return false;
        sp_man_verb(v, f);
        if (!close_page(f, name))
            return false;
    }
    return true;
}

/* Copy a file to standard output. */
static bool append(const char *path)
{
    FILE *f = fopen(path, "r");
    char bytes[4096];
    size_t n;

    if (!f) {
        sp_say("cannot read %s", path);
        return false;
    }
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0)
        fwrite(bytes, 1, n, stdout);
    return close_page(f, path);
}

static bool generate(const sp_registry *r, int argc, char **argv)
{
    static const struct {
        const char *what;
        void (*write)(const sp_registry *r, FILE *out);
    } kinds[] = {
        { "config", sp_config_page },
        { "bash", sp_complete_bash },
        { "zsh", sp_complete_zsh },
        { "fish", sp_complete_fish },
    };

    if (argc == 3 && strcmp(argv[1], "man") == 0)
        return man(r, argv[2]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((argc == 2 || argc == 3) && strcmp(argv[1], kinds[i].what) == 0) {
            kinds[i].write(r, stdout);
            if (argc == 3 && !append(argv[2]))
                return false;
            if (fflush(stdout) == 0 && !ferror(stdout))
                return true;
            sp_say("standard output cannot be written");
            return false;
        }
    sp_say("usage: generate man FOLDER | config | bash|zsh [FILE] | fish");
    return false;
}

int main(int argc, char **argv)
{
    sp_registry *r = sp_registry_new();
    bool done = r && generate(r, argc, argv);

    sp_registry_free(r);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
