/* Configuration: YAML files laid over each other, then section.key=value
 * arguments, checked against tables of typed keys.
 *
 * A section is a plain struct and a table of keys. The `name` key of a section
 * selects a thing (a model, a data set, ...) from the registry, and the thing
 * brings a struct and a table of its own; the keys of both stand side by side
 * in the file. The tables drive parsing, checking, printing and help.
 */
#ifndef SPRAT_CONFIG_H
#define SPRAT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sprat/base.h"

enum { SP_LIST_MAX = 64 };

/* The field of an SP_LIST key. */
typedef struct sp_list {
    int count;
    double value[SP_LIST_MAX];
} sp_list;

/* Kinds of key and the C type of their field. */
typedef enum sp_kind {
    SP_INT,    /* int */
    SP_FLOAT,  /* double */
    SP_BOOL,   /* bool */
    SP_TEXT,   /* const char *, owned by the configuration; "" when unset */
    SP_CHOICE, /* int: the position in `choices` */
    SP_LIST    /* sp_list of numbers */
} sp_kind;

/* One configuration key: parsing, checking, printing and help all read it. */
typedef struct sp_key {
    const char *name;
    sp_kind kind;
    size_t offset;        /* of the field in its struct */
    const char *fallback; /* the default, as it would stand in a file */
    double min, max;      /* bounds of a number, both allowed; both 0: none */
    const char *help;     /* with the unit */
    const char *choices;  /* of an SP_CHOICE: "all|matrices" */
} sp_key;

/* What every selectable thing starts with. */
typedef struct sp_entry {
    const char *name; /* as it stands in `name:` */
    const char *help; /* one line */
    size_t cfg_size;  /* bytes of its own settings; 0: none */
    const sp_key *keys;
    size_t key_count;
} sp_entry;

/* One section of a configuration: its common keys. */
typedef struct sp_section {
    const char *name;     /* "optim" */
    const char *fallback; /* the default of `name`; NULL: nothing to select,
                             "": must be given */
    const char *plural;   /* what `sprat list` calls the things; or NULL */
    size_t size;          /* bytes of the struct of common keys */
    const sp_key *keys;
    size_t key_count;
} sp_section;

/* All things that can be selected, and the sections they belong to. */
typedef struct sp_registry sp_registry;

/* A registry with everything that the library brings. NULL: out of memory. */
sp_registry *sp_registry_new(void);
void sp_registry_free(sp_registry *r);

/* Add a thing to the section `section`. `entry` is the first member of its
 * descriptor and must outlive the registry. Errors: SP_EARG for an unknown
 * section, a name that is taken, or a key that the section itself has;
 * SP_ENOMEM. */
SP_MUST sp_err sp_registry_add(sp_registry *r, const char *section,
                               const sp_entry *entry);

/* The thing of that name, or NULL. */
const sp_entry *sp_registry_find(const sp_registry *r, const char *section,
                                 const char *name);

/* The i-th thing of a section, or NULL past the last. */
const sp_entry *sp_registry_at(const sp_registry *r, const char *section,
                               size_t i);

/* The i-th section, or NULL past the last. */
const sp_section *sp_registry_section(const sp_registry *r, size_t i);

typedef struct sp_config sp_config;

/* Read `files` left to right, then `overrides` ("section.key=value"). All
 * mistakes are found in one pass: sp_last_error() then holds one line for
 * each, "file:line:column: what, nearest name". Where a later file selects
 * another thing with `name`, keys that earlier files set for the earlier thing
 * and that the new one does not have are passed over; any other unknown key is
 * a mistake. All arguments count as one last file, in which a key may be
 * repeated. On success *out is the caller's to free. `registry` must outlive
 * it.
 * Errors: SP_EIO for a file that cannot be read, SP_ECONFIG. */
SP_MUST sp_err sp_config_load(sp_config **out, const sp_registry *registry,
                              const char *const *files, size_t file_count,
                              const char *const *overrides,
                              size_t override_count);
void sp_config_free(sp_config *c);

/* The same for one file that sp_config_print() wrote: what set a key is then
 * what the file's comment on it tells, not the place in that file. */
SP_MUST sp_err sp_config_read_back(sp_config **out, const sp_registry *registry,
                                   const char *file,
                                   const char *const *overrides,
                                   size_t override_count);

/* The struct of a section's common keys; the section must exist. */
const void *sp_config_section(const sp_config *c, const char *section);

/* What `name` selected in a section, and the struct of its own keys (NULL when
 * it has none). The section must have a `name`. */
const sp_entry *sp_config_entry(const sp_config *c, const char *section);
const void *sp_config_own(const sp_config *c, const char *section);

/* Where a key's value came from: "base.yaml:3:5", "argument" or "default".
 * NULL: there is no such key. Valid as long as `c`. */
const char *sp_config_source(const sp_config *c, const char *section,
                             const char *key);

/* Change one value after loading, as an override would ("section.key=value");
 * `source` is what sp_config_source() then tells. Errors: SP_ECONFIG. */
SP_MUST sp_err sp_config_set(sp_config *c, const char *override,
                             const char *source);

/* Write the effective configuration as YAML: every key, with a comment that
 * says what set it. Reading it back gives the same configuration. */
SP_MUST sp_err sp_config_print(const sp_config *c, FILE *out);

/* The same without the comments: equal settings give equal text, wherever they
 * come from. */
SP_MUST sp_err sp_config_print_values(const sp_config *c, FILE *out);

/* The candidate nearest to a misspelt word (Damerau-Levenshtein distance), or
 * NULL when none is near. `next(arg, i)` gives the i-th candidate, NULL past
 * the last. */
const char *sp_nearest(const char *word,
                       const char *(*next)(const void *arg, size_t i),
                       const void *arg);

#endif
