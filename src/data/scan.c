#include "data/scan.h"

#include "base/text.h"
#include "sprat/data.h"

static bool continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

size_t sp_scan_column(const uint8_t *bytes, const uint8_t *at)
{
    size_t column = 1;

    while (at > bytes && at[-1] != '\n')
        column += !continues(*--at);
    return column;
}

static sp_err unsound(const char *name, const uint8_t *bytes, const uint8_t *at)
{
    size_t line = 1, column = sp_scan_column(bytes, at);

    for (const uint8_t *b = bytes; b < at; b++)
        line += *b == '\n';
    if (*at == 0)
        return sp_fail(SP_EDATA,
                       "%s: line %zu, column %zu: a NUL byte, which text does "
                       "not have; remove it, or convert the file if it is "
                       "UTF-16 (iconv -f UTF-16 -t UTF-8)",
                       name, line, column);
    return sp_fail(SP_EDATA,
                   "%s: line %zu, column %zu: byte 0x%02x is not UTF-8 here; "
                   "convert the file (such as iconv -f ISO-8859-1 -t UTF-8) "
                   "or remove the byte",
                   name, line, column, *at);
}

sp_err sp_scan_check(const char *name, const uint8_t *bytes, size_t size)
{
    const uint8_t *end = bytes + size, *at = bytes;

    while (at < end) {
        size_t n = *at == 0 ? 0 : sp_utf8(at, (size_t)(end - at));

        if (n == 0)
            return unsound(name, bytes, at);
        at += n;
    }
    return SP_OK;
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* End the line with an <eos>. */
static bool end_line(sp_scan *s, sp_token *out)
{
    *out = (sp_token){ (const uint8_t *)SP_EOS, sizeof SP_EOS - 1, s->line };
    s->begun = false;
    return true;
}

static bool next_word(sp_scan *s, sp_token *out)
{
    while (s->bytes < s->end && is_space(*s->bytes)) {
        if (*s->bytes++ == '\n') {
            end_line(s, out);
            s->line++;
            return true;
        }
        s->begun = true;
    }
    if (s->bytes == s->end)
        return s->begun && !s->open && end_line(s, out);
    *out = (sp_token){ .bytes = s->bytes, .line = s->line };
    while (s->bytes < s->end && !is_space(*s->bytes))
        s->bytes++;
    out->size = (size_t)(s->bytes - out->bytes);
    s->begun = true;
    return true;
}

static bool next_char(sp_scan *s, sp_token *out)
{
    if (s->end - s->bytes > 1 && s->bytes[0] == '\r' && s->bytes[1] == '\n')
        s->bytes++;
    if (s->bytes == s->end)
        return false;
    *out = (sp_token){ .bytes = s->bytes, .line = s->line };
    s->line += *s->bytes == '\n';
    do {
        s->bytes++;
        out->size++;
    } while (s->bytes < s->end && continues(*s->bytes));
    return true;
}

bool sp_scan_next(sp_scan *s, sp_token *out)
{
    return s->chars ? next_char(s, out) : next_word(s, out);
}
