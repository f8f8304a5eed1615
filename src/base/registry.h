/* Making a registry: for src/train, which knows all sections, and tests. */
#ifndef SPRAT_BASE_REGISTRY_H
#define SPRAT_BASE_REGISTRY_H

#include "sprat/config.h"

/* An empty registry over `count` sections, which must outlive it; things are
 * added with sp_registry_add(). NULL: out of memory. */
sp_registry *sp_registry_create(const sp_section *const *sections,
                                size_t count);

/* The section of that name, or NULL. */
const sp_section *sp_registry_section_find(const sp_registry *r,
                                           const char *name);

#endif
