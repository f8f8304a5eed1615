/* sprat doctor: whether this machine and this build will do, and what slows
 * them down. The parts are in doctor_*.c. */
#include <stdarg.h>
#include <stdio.h>

#include "doctor.h"

static const char *const marks[SP_MARKS] = { "ok", "note", "problem" };

void sp_found(sp_doctor *d, sp_mark mark, const char *topic, const char *remedy,
              const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    d->count[mark]++;
    if (!d->json) {
        printf("%-8s %-12s %s\n", marks[mark], topic, text);
        if (remedy)
            printf("%22s-> %s\n", "", remedy);
        fflush(stdout);
        return;
    }
    sp_json_open(&d->found, NULL);
    sp_json_text(&d->found, "mark", marks[mark]);
    sp_json_text(&d->found, "topic", topic);
    sp_json_text(&d->found, "text", text);
    sp_json_text(&d->found, "remedy", remedy);
    sp_json_close(&d->found);
}

static void examine(sp_doctor *d)
{
    sp_doctor_libraries(d);
    sp_doctor_machine(d);
    sp_doctor_variables(d);
    sp_doctor_numbers(d);
    sp_doctor_mpi(d);
    sp_doctor_places(d);
}

static int conclude(sp_doctor *d)
{
    int notes = d->count[SP_NOTE], problems = d->count[SP_PROBLEM];
    int status = problems ? SP_EXIT_FAILED : SP_EXIT_DONE, printed;

    if (!d->json) {
        printf("\n%d problem%s, %d note%s\n", problems,
               problems == 1 ? "" : "s", notes, notes == 1 ? "" : "s");
        return status;
    }
    sp_json_close(&d->found);
    sp_json_int(&d->found, "problems", problems);
    sp_json_int(&d->found, "notes", notes);
    sp_json_close(&d->found);
    printed = sp_print_json(&d->found);
    return status == SP_EXIT_DONE ? printed : status;
}

static int doctor(const sp_args *a)
{
    sp_doctor d = { .json = sp_args_flag(a, "json") != NULL };
    sp_err e;

    if (d.json) {
        sp_json_open(&d.found, NULL);
        sp_json_list(&d.found, "findings");
    }
    if (sp_comm_ranks(a->comm) == 1) {
        examine(&d);
        return conclude(&d);
    }
    e = sp_doctor_ranks(&d, a->comm);
    if (e != SP_OK) {
        sp_json_free(&d.found);
        return sp_refuse_all(a, e);
    }
    if (sp_comm_rank(a->comm) == 0)
        return conclude(&d);
    sp_json_free(&d.found);
    return SP_EXIT_DONE;
}

const sp_verb sp_verb_doctor = {
    .name = "doctor",
    .words = "",
    .ranks = true,
    .help = "look over this machine: libraries, cores, MPI, disk, data",
    .flags = {
        { "json", NULL, "print one JSON object and nothing else" },
    },
    .examples =
        "Every line is ok, a note (good to know, or slower than it could be) "
        "or a\nproblem, the last two with what to do. It takes a few seconds, "
        "in which the\ncores are measured and two ranks are started. Status "
        "0: no problem; 1: there is\none. On ranks it tells how they find "
        "each other instead: hosts, cores, a sum over\nall, whether they "
        "share this folder. The object's keys: problems notes\n"
        "findings[{mark,topic,text,remedy}].\n\n"
        "  sprat doctor\n"
        "  sprat doctor --json\n"
        "  mpirun -n 4 sprat doctor\n",
    .run = doctor,
};
