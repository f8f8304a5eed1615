/* What a run was set to, config.yaml, and what it warned of, log.txt. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "report/run.h"

enum {
    MOST_CONFIG = 1 << 22,
    MOST_SETTINGS = 4096,
    MOST_LOG = 1 << 28,
    MOST_WARNINGS = 20
};

/* Where the comment of a line begins: at a '#' behind a space and outside of
 * quotes, or at the end. */
static char *comment_of(char *text)
{
    char quote = '\0';

    for (char *c = text; *c; c++) {
        if (quote == '"' && *c == '\\' && c[1])
            c++;
        else if (quote)
            quote = *c == quote ? '\0' : quote;
        else if (*c == '"' || *c == '\'')
            quote = *c;
        else if (*c == '#' && (c == text || c[-1] == ' '))
            return c;
    }
    return text + strlen(text);
}

/* Cut spaces off both ends, in place. */
static char *trimmed(char *text)
{
    char *end;

    text += strspn(text, " \t\r");
    end = text + strlen(text);
    while (end > text && strchr(" \t\r", end[-1]))
        *--end = '\0';
    return text;
}

/* "section:" or "  key: value  # what set it". */
static bool take_setting(sp_run_record *r, char *line, const char **section)
{
    char *comment = comment_of(line), *source = comment, *colon;
    bool indented = line[0] == ' ';
    sp_run_setting s;

    if (*comment) {
        *comment = '\0';
        source = trimmed(comment + 1);
    }
    line = trimmed(line);
    if (!*line)
        return true;
    colon = strchr(line, ':');
    if (!colon || colon == line || (colon[1] && colon[1] != ' '))
        return false;
    *colon = '\0';
    if (!indented) {
        *section = line;
        return !*trimmed(colon + 1);
    }
    if (!*section || r->settings.size / sizeof s >= MOST_SETTINGS)
        return false;
    s = (sp_run_setting){ *section, line, trimmed(colon + 1), source };
    sp_text_put(&r->settings, &s, sizeof s);
    return true;
}

static sp_err take_settings(sp_run_record *r, const char *path, size_t size)
{
    char *line = (char *)r->config, *end;
    const char *section = NULL;

    if (memchr(line, 0, size))
        return sp_fail(SP_EFORMAT, "%s: it holds 0 bytes, so it is not text",
                       path);
    for (size_t number = 1; *line; number++, line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        if (!take_setting(r, line, &section))
            return sp_fail(SP_EFORMAT,
                           "%s:%zu: neither `section:` nor `  key: value`, as "
                           "a run writes its configuration",
                           path, number);
    }
    return sp_text_check(&r->settings);
}

sp_err sp_run_read_config(sp_run_record *r)
{
    char *path = sp_path(r->path, "config.yaml");
    size_t size;
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && !sp_is_file(path)) {
        sp_run_note(r, "%s: is not there: no settings", path);
    } else if (e == SP_OK) {
        e = sp_file_read(path, MOST_CONFIG, &r->config, &size);
        if (e == SP_OK)
            e = take_settings(r, path, size);
    }
    free(path);
    return e;
}

/* ---- Warnings ----------------------------------------------------------- */

/* Whether the warnings have this line already. */
static bool has_line(const sp_text *lines, const char *line, size_t n)
{
    for (const char *at = sp_text_string(lines); *at;) {
        size_t length = strcspn(at, "\n");
        if (length == n && memcmp(at, line, n) == 0)
            return true;
        at += length + 1;
    }
    return false;
}

static void take_warning(sp_run_record *r, const char *line, size_t n,
                         int *count)
{
    static const char prefix[] = "warning: ";
    size_t skip = sizeof prefix - 1;

    if (n <= skip || memcmp(line, prefix, skip) != 0 ||
        has_line(&r->warnings, line + skip, n - skip))
        return;
    if (++*count > MOST_WARNINGS)
        return;
    sp_text_put(&r->warnings, line + skip, n - skip);
    sp_text_put(&r->warnings, "\n", 1);
}

sp_err sp_run_read_log(sp_run_record *r)
{
    char *path = sp_path(r->path, "log.txt");
    uint8_t *bytes = NULL;
    size_t size = 0;
    int count = 0;
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && sp_is_file(path))
        e = sp_file_read(path, MOST_LOG, &bytes, &size);
    for (size_t at = 0; e == SP_OK && at < size;) {
        const char *line = (const char *)bytes + at;
        const char *end = memchr(line, '\n', size - at);
        size_t n = end ? (size_t)(end - line) : size - at;
        take_warning(r, line, n, &count);
        at += n + 1;
    }
    if (count > MOST_WARNINGS)
        sp_run_note(r, "%s: %d more warnings", path, count - MOST_WARNINGS);
    free(bytes);
    free(path);
    return e == SP_OK ? sp_text_check(&r->warnings) : e;
}
