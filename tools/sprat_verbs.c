/* The verbs of the sprat program, in the order in which help shows them. */
#include "sprat.h"

static const sp_verb *const verbs[] = {
    &sp_verb_train,   &sp_verb_resume,  &sp_verb_table,  &sp_verb_eval,
    &sp_verb_predict, &sp_verb_sample,  &sp_verb_export, &sp_verb_import,
    &sp_verb_info,    &sp_verb_check,   &sp_verb_bench,  &sp_verb_verify,
    &sp_verb_report,  &sp_verb_compare, &sp_verb_list,   &sp_verb_gradcheck,
    &sp_verb_doctor,  &sp_verb_version,
};

const sp_verb *sp_verb_at(size_t i)
{
    return i < sizeof verbs / sizeof *verbs ? verbs[i] : NULL;
}
