/* What each format takes for more than a letter, written so that it is one. */
#include "table/quote.h"

#include <stdbool.h>
#include <string.h>

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\0') || c == 127;
}

void sp_quote_markdown(sp_text *out, const char *text)
{
    for (; *text; text++) {
        if (is_control(*text))
            sp_text_put(out, " ", 1);
        else if (*text == '<')
            sp_text_add(out, "&lt;"); /* or it begins HTML */
        else if (*text == '&')
            sp_text_add(out, "&amp;");
        else if (strchr("\\`*_{}[]#|~>!$", *text))
            sp_text_add(out, "\\%c", *text);
        else
            sp_text_put(out, text, 1);
    }
}

void sp_quote_link(sp_text *out, const char *path)
{
    for (; *path; path++) {
        if (is_control(*path) || strchr(" %()<>\\\"|", *path))
            sp_text_add(out, "%%%02X", (unsigned char)*path);
        else
            sp_text_put(out, path, 1);
    }
}

void sp_quote_latex(sp_text *out, const char *text)
{
    static const struct {
        char letter;
        const char *name;
    } named[] = {
        { '\\', "textbackslash" }, { '^', "textasciicircum" },
        { '~', "textasciitilde" }, { '<', "textless" },
        { '>', "textgreater" },    { '|', "textbar" },
    };

    for (; *text; text++) {
        size_t i = 0;

        while (i < sizeof named / sizeof *named && named[i].letter != *text)
            i++;
        if (is_control(*text))
            sp_text_put(out, " ", 1);
        else if (i < sizeof named / sizeof *named)
            sp_text_add(out, "\\%s{}", named[i].name);
        else if (strchr("#$%&_{}", *text))
            sp_text_add(out, "\\%c", *text);
        else
            sp_text_put(out, text, 1);
    }
}

void sp_quote_csv(sp_text *out, const char *text)
{
    size_t n = strlen(text);
    bool quote = strpbrk(text, ",\"") ||
                 (n > 0 && (text[0] == ' ' || text[n - 1] == ' '));

    if (quote)
        sp_text_put(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"')
            sp_text_put(out, "\"\"", 2);
        else
            sp_text_put(out, is_control(*text) ? " " : text, 1);
    }
    if (quote)
        sp_text_put(out, "\"", 1);
}
