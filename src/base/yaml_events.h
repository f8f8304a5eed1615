/* YAML, event by event, with places for messages and without the extras that
 * configurations have no use for: anchors, aliases, tags. */
#ifndef SPRAT_BASE_YAML_EVENTS_H
#define SPRAT_BASE_YAML_EVENTS_H

#include <yaml.h>

#include "base/config_internal.h"

/* One file or argument under reading. `event` is the present event. What is
 * wrong goes to l->mistakes. */
typedef struct sp_yaml {
    sp_loading *l;
    yaml_parser_t parser;
    yaml_event_t event;
    const char *path;  /* NULL: an argument or a default */
    const char *place; /* how messages begin then */
    const unsigned char *bytes;
    int keys;    /* counted by sp_yaml_count() */
    bool broken; /* not YAML any further; already complained about */
} sp_yaml;

enum { SP_YAML_BYTES = 1 << 20 /* of a file, at most */ };

/* Begin to read `bytes`, before the first event; `l` and `path` or `place` are
 * set. False: out of memory, and there is nothing to stop. */
bool sp_yaml_start(sp_yaml *y, const void *bytes, size_t size);
void sp_yaml_stop(sp_yaml *y);

/* Where the present event begins: "path:line:column", or `place`. */
const char *sp_yaml_here(const sp_yaml *y);

/* Step to the next event; false when the text is broken. */
bool sp_yaml_next(sp_yaml *y);

/* Step to the root of the only document; false when there is none. */
bool sp_yaml_root(sp_yaml *y);

/* Behind the root: complain if a second document begins. */
void sp_yaml_end(sp_yaml *y);

/* Pass over the node that the present event begins. */
void sp_yaml_skip(sp_yaml *y);

/* Is the present event a scalar (with `what` it is for the message) without
 * YAML's extras? Otherwise complain. */
bool sp_yaml_scalar(sp_yaml *y, const char *what);

/* The text of a scalar event. */
const char *sp_yaml_text(const sp_yaml *y);

/* Is the list or mapping that the present event begins free of YAML's extras?
 * Otherwise complain. */
bool sp_yaml_plain(sp_yaml *y);

/* The value of a setting, a scalar or a list of scalars, which the present
 * event begins, with its place: all but the setting's section and key. False:
 * it was complained about, or there is no memory. */
bool sp_yaml_value(sp_yaml *y, sp_setting *s);

/* Count a key: a file of another kind must not be read to its end. */
void sp_yaml_count(sp_yaml *y);

/* The rest is not read: what it holds is not known. */
void sp_yaml_give_up(sp_yaml *y);

#endif
