/* What the program says, and the configurations that it opens. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dist/agree.h"
#include "sprat.h"

void sp_say(const char *fmt, ...)
{
    char text[16384];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    /* What was printed so far comes first where both go to one place. */
    fflush(stdout);
    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(stderr, "sprat: %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

int sp_refuse(sp_err e)
{
    const char *text = sp_last_error();

    sp_say("%s", *text ? text : sp_strerror(e));
    return SP_EXIT_USAGE;
}

int sp_refuse_all(const sp_args *a, sp_err e)
{
    int rank = sp_comm_rank(a->comm);
    const char *text = sp_last_error();
    char name[SP_RANK_NAME];

    /* To stop is something that ranks do in one step. */
    if (sp_agreed(a->comm) || e == SP_ESTOPPED) {
        if (rank == 0)
            sp_refuse(e);
        return SP_EXIT_USAGE;
    }
    sp_say("%s: %s", sp_rank_name(a->comm, SP_ALL, rank, name),
           *text ? text : sp_strerror(e));
    /* Ranks that miss the same one find out together, and the first of them
     * writes down how the run ended. */
    if (e == SP_EPEER && rank != 0)
        nanosleep(&(struct timespec){ .tv_sec = 2 }, NULL);
    sp_comm_abort(a->comm, SP_EXIT_FAILED);
    return SP_EXIT_FAILED;
}

const char *sp_dashes(const char *option) { return option[1] ? "--" : "-"; }

/* All candidates as "a, b, c", as far as they fit. */
static void join(char *out, size_t size, bool option,
                 const char *(*next)(const void *arg, size_t i),
                 const void *arg)
{
    size_t used = 0;
    const char *name;

    snprintf(out, size, "none");
    for (size_t i = 0; (name = next(arg, i)) && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s%s", i ? ", " : "",
                             option ? sp_dashes(name) : "", name);
}

int sp_unknown(const char *what, const char *word,
               const char *(*next)(const void *arg, size_t i), const void *arg)
{
    bool option = strcmp(what, "option") == 0;
    size_t skip = option ? strspn(word, "-") : 0;
    const char *near;
    char name[64], known[1024];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + skip, "="),
             word + skip);
    near = sp_nearest(name, next, arg);
    join(known, sizeof known, option, next, arg);
    if (near)
        sp_say("%s: no such %s; did you mean %s%s?", word, what,
               option ? sp_dashes(near) : "", near);
    else
        sp_say("%s: no such %s; there are: %s", word, what, known);
    return SP_EXIT_USAGE;
}

int sp_print_json(sp_json *j)
{
    const char *text;
    sp_err e = sp_json_finish(j, &text);

    if (e == SP_OK)
        printf("%s\n", text);
    else
        sp_say("%s", sp_last_error());
    sp_json_free(j);
    return e == SP_OK ? SP_EXIT_DONE : SP_EXIT_FAILED;
}

sp_err sp_opened_registry(sp_opened *o)
{
    o->registry = sp_registry_new();
    if (!o->registry)
        return sp_fail(SP_ENOMEM, "out of memory");
    return SP_OK;
}

sp_err sp_opened_config(sp_opened *o, const sp_args *a)
{
    SP_TRY(sp_opened_registry(o));
    return sp_config_load(&o->config, o->registry, a->words, a->word_count,
                          a->overrides, a->override_count);
}

void sp_opened_free(sp_opened *o)
{
    sp_config_free(o->config);
    sp_registry_free(o->registry);
    *o = (sp_opened){ 0 };
}
