/* Names that formats take for more than letters. */
#include <check.h>
#include <stdlib.h>

#include "table/quote.h"

static void quoted(void (*quote)(sp_text *out, const char *text),
                   const char *text, const char *want)
{
    sp_text out = { 0 };

    quote(&out, text);
    ck_assert_int_eq(sp_text_check(&out), SP_OK);
    ck_assert_str_eq(sp_text_string(&out), want);
    sp_text_free(&out);
}

/* CommonMark 0.30, 2.4: a backslash before ASCII punctuation makes a letter of
 * it; a bar would end a table's cell, < begin HTML, & an entity. */
START_TEST(markdown)
{
    quoted(sp_quote_markdown, "plain, 0.1 % (n = 3)", "plain, 0.1 % (n = 3)");
    quoted(sp_quote_markdown, "a|b", "a\\|b");
    quoted(sp_quote_markdown, "*a* _b_ `c`", "\\*a\\* \\_b\\_ \\`c\\`");
    quoted(sp_quote_markdown, "[a](b)", "\\[a\\](b)");
    quoted(sp_quote_markdown, "\\|", "\\\\\\|");
    quoted(sp_quote_markdown, "<b>&lt;", "&lt;b\\>&amp;lt;");
    quoted(sp_quote_markdown, "a\r\n\tb\x7f", "a   b ");
    quoted(sp_quote_markdown, "", "");
    quoted(sp_quote_markdown, "\xC3\xA9", "\xC3\xA9");
}
END_TEST

START_TEST(links)
{
    quoted(sp_quote_link, "dgc-1/seed-1", "dgc-1/seed-1");
    quoted(sp_quote_link, "a b(c)%|", "a%20b%28c%29%25%7C");
    quoted(sp_quote_link, "a\nb", "a%0Ab");
}
END_TEST

/* Knuth, "The TeXbook", chapter 7: ten characters have a meaning of their own;
 * in the old encoding <, > and | are other letters. */
START_TEST(latex)
{
    quoted(sp_quote_latex, "plain (n = 3)", "plain (n = 3)");
    quoted(sp_quote_latex, "#$%&_{}", "\\#\\$\\%\\&\\_\\{\\}");
    quoted(sp_quote_latex, "\\input", "\\textbackslash{}input");
    quoted(sp_quote_latex, "^~", "\\textasciicircum{}\\textasciitilde{}");
    quoted(sp_quote_latex, "<|>", "\\textless{}\\textbar{}\\textgreater{}");
    quoted(sp_quote_latex, "a\nb\rc", "a b c");
}
END_TEST

/* RFC 4180, 2.5 to 2.7. */
START_TEST(csv)
{
    quoted(sp_quote_csv, "plain", "plain");
    quoted(sp_quote_csv, "", "");
    quoted(sp_quote_csv, "a,b", "\"a,b\"");
    quoted(sp_quote_csv, "say \"b\"", "\"say \"\"b\"\"\"");
    quoted(sp_quote_csv, "\"", "\"\"\"\"");
    quoted(sp_quote_csv, " a", "\" a\"");
    quoted(sp_quote_csv, "a\nb", "a b");
    quoted(sp_quote_csv, "%s%n", "%s%n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table_quote");
    TCase *t = tcase_create("table_quote");
    SRunner *r = srunner_create(s);
    int failures;

    tcase_add_test(t, markdown);
    tcase_add_test(t, links);
    tcase_add_test(t, latex);
    tcase_add_test(t, csv);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failures = srunner_ntests_failed(r);
    srunner_free(r);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
