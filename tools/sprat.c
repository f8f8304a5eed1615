/* The sprat program: `sprat VERB ...`. Each verb is a row of the table in
 * sprat_verbs.c and lives in a file of its group; sprat.h says what they share.
 */
#include "sprat.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dist/agree.h"

static const char *verb_next(const void *unused, size_t i)
{
    const sp_verb *v = sp_verb_at(i);

    (void)unused;
    if (v)
        return v->name;
    return i == 0 || sp_verb_at(i - 1) ? "help" : NULL;
}

static const sp_verb *verb_find(const char *name)
{
    const sp_verb *v;

    for (size_t i = 0; (v = sp_verb_at(i)); i++) {
        if (strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

static void usage(FILE *out)
{
    const sp_verb *v;

    fputs("sprat " SP_VERSION ": trains neural networks on CPUs\n\n"
          "usage: sprat VERB ...\n\n",
          out);
    for (size_t i = 0; (v = sp_verb_at(i)); i++)
        fprintf(out, "  %-10s %s\n", v->name, v->help);
    fputs("  help       tell more about a verb\n\n"
          "A first run:  sprat train configs/fashion/quickstart.yaml\n"
          "Exit status:  0 done; 1 the run failed; 2 usage, configuration or "
          "data;\n"
          "              3 stopped on request, after saving; 4 a value is "
          "not finite\n",
          out);
}

static void usage_of(const sp_verb *v, FILE *out)
{
    fprintf(out, "usage: sprat %s%s%s", v->name, *v->words ? " " : "",
            v->words);
    if (v->overrides)
        fputs(" [section.key=value ...]", out);
    for (int i = 0; i < SP_FLAGS_MAX && v->flags[i].name; i++)
        fprintf(out, v->flags[i].value ? " [%s%s %s]" : " [%s%s]",
                sp_dashes(v->flags[i].name), v->flags[i].name,
                v->flags[i].value);
    fprintf(out, "\n\n%s\n\n", v->help);
    for (int i = 0; i < SP_FLAGS_MAX && v->flags[i].name; i++) {
        const sp_flag *f = &v->flags[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s", sp_dashes(f->name), f->name,
                 f->value ? " " : "", f->value ? f->value : "");
        fprintf(out, "  %-22s %s\n", left, f->help);
    }
    if (v->flags[0].name)
        fputs("\n", out);
    fputs(v->examples, out);
}

static int help(int argc, char **argv)
{
    const sp_verb *v;

    if (argc == 0 || strcmp(argv[0], "help") == 0) {
        usage(stdout);
        return SP_EXIT_DONE;
    }
    v = verb_find(argv[0]);
    if (!v)
        return sp_unknown("verb", argv[0], verb_next, NULL);
    if (argc > 1) {
        sp_say("help: usage: sprat help [VERB]");
        return SP_EXIT_USAGE;
    }
    usage_of(v, stdout);
    return SP_EXIT_DONE;
}

/* All ranks must have been given the same task; what it is about in detail is
 * compared later. */
static sp_err meet(sp_args *a)
{
    const sp_verb *v = a->verb;
    char text[4096];
    size_t used;

    SP_TRY(sp_comm_open(&a->comm));
    used = (size_t)snprintf(text, sizeof text, "%s %s\n", v->name,
                            v->most == 1 ? a->words[0] : "");
    for (int i = 0; i < SP_FLAGS_MAX && v->flags[i].name; i++)
        if (a->flags[i] && used < sizeof text)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "--%s %s\n",
                                 v->flags[i].name, a->flags[i]);
    return sp_agree_text(a->comm, "the command", text);
}

/* One process is enough, and as many would all say the same. */
static sp_err check_alone(const sp_args *a)
{
    const char *variable;
    int ranks = sp_launched(&variable);

    if (ranks <= 1 || strcmp(a->verb->name, "version") == 0)
        return SP_OK;
    return sp_fail(SP_EARG,
                   "%s: is one process, but was started as one of %d ranks "
                   "(%s): leave the launcher out",
                   a->verb->name, ranks, variable);
}

static int run_ranks(sp_args *a)
{
    sp_err e;
    int status;

    if (a->verb->prepare)
        a->verb->prepare();
    e = a->verb->ranks ? meet(a) : check_alone(a);
    status = e == SP_OK ? a->verb->run(a) : sp_refuse_all(a, e);
    sp_comm_close(a->comm);
    return status;
}

static int run_verb(const sp_verb *v, int argc, char **argv)
{
    sp_args args;
    int status = SP_EXIT_USAGE;

    if (sp_args_parse(&args, v, argc, argv)) {
        if (args.help) {
            usage_of(v, stdout);
            status = SP_EXIT_DONE;
        } else {
            status = run_ranks(&args);
        }
    }
    sp_args_free(&args);
    return status;
}

static int dispatch(int argc, char **argv)
{
    const char *name = argv[1];
    const sp_verb *v;

    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 ||
        strcmp(name, "-h") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(name, "--version") == 0)
        name = "version";
    v = verb_find(name);
    if (!v)
        return sp_unknown("verb", name, verb_next, NULL);
    return run_verb(v, argc - 2, argv + 2);
}

/* A standard stream that was closed would be the next file to be opened, and
 * what is printed would go into it. Writing to standard output fails, as it
 * should: a result that nobody gets is an error. */
static bool hold_streams(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        int how = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how) != fd)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    int status;

    if (!hold_streams())
        return SP_EXIT_FAILED;
    if (argc < 2) {
        usage(stderr);
        return SP_EXIT_USAGE;
    }
    status = dispatch(argc, argv);
    /* A full disk behind a redirection shows only now. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        sp_say("standard output cannot be written");
        if (status == SP_EXIT_DONE)
            status = SP_EXIT_FAILED;
    }
    return status;
}
