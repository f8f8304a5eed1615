/* What the parts of the configuration code share: settings as they were read,
 * before they are matched with keys.
 *
 *   yaml_events.c   text -> events, with places
 *   config_yaml.c   files and arguments -> settings
 *   config_check.c  mistakes in names of sections, keys and things
 *   config_value.c  one setting <-> one field
 *   config.c        settings -> structs
 *   config_print.c  structs -> YAML
 */
#ifndef SPRAT_BASE_CONFIG_INTERNAL_H
#define SPRAT_BASE_CONFIG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/registry.h"
#include "base/text.h"
#include "sprat/config.h"

/* An arena whose running out sticks: later requests may give NULL too, and
 * whoever began the work looks at `failed` at its end. */
typedef struct sp_pool {
    sp_arena arena;
    bool failed;
} sp_pool;

void *sp_pool_take(sp_pool *p, size_t size); /* zeroed; NULL: no memory */
const char *sp_pool_text(sp_pool *p, const char *text, size_t n);
const char *sp_pool_print(sp_pool *p, const char *fmt, ...) SP_PRINTF(2, 3);

/* A value as it stands in a file or argument. */
typedef struct sp_setting sp_setting;
struct sp_setting {
    sp_setting *next;
    const sp_section *section;
    const char *key;
    const char **items; /* a list's, or one scalar */
    size_t count;
    bool is_list;
    int layer; /* which file, from 0; after them all arguments together */
    const char *key_at, *value_at; /* "a.yaml:3:5", how messages begin */
    const char *source;            /* what sp_config_source() tells */
};

/* Reading under way. */
typedef struct sp_loading {
    const sp_registry *registry;
    sp_pool *pool;
    sp_setting *first, **last; /* in the order read; *last is the end */
    int layer;
    sp_text mistakes; /* one line each */
    int mistake_count;
    bool unreadable;   /* a file could not be read at all */
    bool partial;      /* a file was not read to its end */
    bool printed;      /* files are sp_config_print()'s: comments are sources */
    const char *place; /* of mistakes that have none; NULL: "configuration" */
} sp_loading;

/* Add one line, "AT: text", to the mistakes. */
void sp_complain(sp_loading *l, const char *at, const char *fmt, ...)
    SP_PRINTF(3, 4);

/* Turn what was collected into one error; frees the list. */
SP_MUST sp_err sp_conclude(sp_loading *l);

enum { SP_SHOWN_ROOM = 72 };

/* A foreign word as messages show it: in quotes, cut short, without control
 * characters. Returns `out`. */
const char *sp_shown(char out[SP_SHOWN_ROOM], const char *word);

/* Append the settings of a file, or of one argument "section.key=value" (a
 * NULL source means "argument"); mistakes go to l->mistakes. */
void sp_settings_file(sp_loading *l, const char *path);
void sp_settings_argument(sp_loading *l, const char *text, const char *source);

/* A key's default as a setting; NULL after a complaint. */
const sp_setting *sp_settings_default(sp_loading *l, const sp_section *section,
                                      const sp_key *key);

/* The key of that name in a table, or NULL. */
const sp_key *sp_key_find(const sp_key *keys, size_t count, const char *name);

/* What `name` selects in a section, looking at layers up to `layer` only;
 * *by is the setting that did (NULL: the default). NULL: nothing known. */
const sp_entry *sp_selected(const sp_loading *l, const sp_section *section,
                            int layer, const sp_setting **by);

/* Complain about a section of a file or argument that does not exist. */
void sp_complain_section(sp_loading *l, const char *at, const char *name);

/* Complain about every setting whose key does not exist, every `name` that
 * nothing has, and every one that is missing. */
void sp_check_names(sp_loading *l);

/* Store a setting in its field of the struct at `base`, or complain. */
void sp_value_store(sp_loading *l, const sp_key *key, const sp_setting *s,
                    void *base);

/* The field of the struct at `base` as YAML. */
void sp_value_print(sp_text *out, const sp_key *key, const void *base);

/* Take the sources of settings `s` and those behind it from the comments of
 * the printed file `text` that they stand in. */
void sp_sources_restore(sp_loading *l, sp_setting *s, const char *text);

/* A string as YAML, quoted where it must be. */
void sp_yaml_string(sp_text *out, const char *text);

/* A section of a finished configuration. */
typedef struct sp_filled {
    const sp_section *section;
    const sp_entry *entry; /* what `name` selected; or NULL */
    void *common, *own;    /* the structs; own may be NULL */
    const char *name_from, **common_from, **own_from; /* sources, by key */
} sp_filled;

struct sp_config {
    const sp_registry *registry;
    sp_pool pool; /* everything below, and all strings */
    sp_setting *settings;
    int layers;        /* used so far */
    sp_filled *filled; /* one for each section of the registry */
    size_t count;
};

#endif
