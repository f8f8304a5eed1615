/* Reading a table file: what its two kinds of mapping share. */
#ifndef SP_TABLE_READ_H
#define SP_TABLE_READ_H

#include "base/yaml_events.h"
#include "table/definition.h"

enum { SP_TABLE_KEYS = 16 /* of a mapping, at most */ };

/* A mapping under reading: typed keys, stored at `base`, and lists of strings
 * beside them. */
typedef struct sp_mapping {
    const sp_section *section;     /* its keys; its name for messages */
    void *base;                    /* the struct of the keys' fields */
    const char *const *list_names; /* `list_count` of them */
    sp_words *lists;
    size_t list_count;
    const char *at[SP_TABLE_KEYS]; /* where each key's value stands, or NULL;
                                      the keys', then the lists' */
    /* One more key, which has its own reader. */
    const char *other;
    void (*read_other)(sp_yaml *y, void *arg);
    void *arg;
    const char *other_at;
} sp_mapping;

/* Read the mapping that the present event begins, and the defaults of keys
 * that it leaves out. */
void sp_mapping_read(sp_yaml *y, sp_mapping *b);

/* Where the value of a key stands; NULL: it is left out. */
const char *sp_mapping_at(const sp_mapping *b, const char *key);

#endif
