/* What all ranks must have in common before step 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dist/agree.h"
#include "train/alike.h"
#include "train/config_text.h"
#include "train/evaluate.h"
#include "train/session.h"

/* The configuration without what set each key, which may be another file on
 * each host. */
static sp_err agree_config(const sp_session *s)
{
    char *text = NULL, *to;
    sp_err e = sp_config_text(s->set.config, &text);

    e = sp_agree(s->comm, e);
    if (e == SP_OK) {
        to = text;
        for (const char *line = text, *end; *line; line = end + 1) {
            size_t length = strcspn(line, "#\n");

            end = strchr(line, '\n');
            memmove(to, line, length);
            to += length;
            *to++ = '\n';
            if (!end)
                break;
        }
        *to = '\0';
        e = sp_agree_text(s->comm, "the configuration", text);
    }
    free(text);
    return e;
}

sp_err sp_session_agree(const sp_session *s)
{
    char build[128];

    if (sp_comm_ranks(s->comm) == 1)
        return SP_OK;
    snprintf(build, sizeof build, "%s, commit %s", SP_VERSION, sp_commit());
    SP_TRY(sp_agree_text(s->comm, "the version of sprat", build));
    SP_TRY(agree_config(s));
    if (s->data)
        SP_TRY(sp_data_agree(s->data, s->comm));
    return sp_params_agree(s->params, s->comm);
}
