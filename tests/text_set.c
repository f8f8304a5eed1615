#include "text_set.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

char *text_dir;
void *text_own, *text_state;
sp_data_info text_info;

void text_set_up(void)
{
    text_dir = sp_scratch_new();
    text_own = sp_own_new(&SET->entry);
    text_state = NULL;
}

void text_tear_down(void)
{
    if (text_state)
        SET->close(text_state);
    free(text_own);
    sp_scratch_free(text_dir);
}

void text_set(const char *key, double value)
{
    sp_own_set(text_own, &SET->entry, key, value);
}

void text_put(const char *name, const char *text)
{
    sp_scratch_write(text_dir, name, text, strlen(text));
}

void text_put_three(const char *train, const char *valid, const char *test)
{
    text_put("train.txt", train);
    text_put("valid.txt", valid);
    text_put("test.txt", test);
}

void text_opens(void)
{
    if (text_state)
        SET->close(text_state);
    text_state = NULL;
    if (SET->open(text_dir, text_own, &text_info, &text_state) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

void text_refused(sp_err code)
{
    void *none = NULL;

    ck_assert_int_eq(SET->open(text_dir, text_own, &text_info, &none), code);
    ck_assert_ptr_null(none);
}
