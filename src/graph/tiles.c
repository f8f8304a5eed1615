/* Which Winograd tiles a graph's products use: as set, as an earlier program
 * chose, or as the kernels' rule chooses. */
#include <string.h>

#include "base/text.h"
#include "graph/program.h"

/* The record of a node in a text of sp_graph_tiles(): a digit for each pass;
 * NULL: there is none. */
static const char *record_of(const char *tiles, const char *name)
{
    size_t length = strlen(name);

    while (*tiles) {
        size_t size = strcspn(tiles, " ");
        if (size == length + 1 + SP_TILED_PASSES && tiles[length] == '=' &&
            memcmp(tiles, name, length) == 0)
            return tiles + length + 1;
        tiles += size;
        tiles += strspn(tiles, " ");
    }
    return NULL;
}

void sp_tiles_wish(const sp_graph_opt *opt, sp_node *n)
{
    const char *record = opt->tiles ? record_of(opt->tiles, n->name) : NULL;

    for (int i = 0; i < SP_TILED_PASSES; i++)
        switch (opt->winograd) {
        case SP_WINOGRAD_OFF:
            n->tile_wish[i] = 0;
            break;
        case SP_WINOGRAD_2:
            n->tile_wish[i] = 2;
            break;
        case SP_WINOGRAD_4:
            n->tile_wish[i] = 4;
            break;
        case SP_WINOGRAD_AUTO:
            n->tile_wish[i] = !opt->tiles ? SP_TILE_BY_RULE
                              : record    ? record[i] - '0'
                                          : 0;
        }
}

sp_err sp_graph_tiles(const sp_graph *g, char **text)
{
    sp_text out = { 0 };
    sp_err e;

    for (int i = 0; i < g->steps.count; i++) {
        const sp_node *n = &sp_step_at(g, i)->node;
        const int *t = n->tile;
        if (t[0] > 0 || t[1] > 0 || t[2] > 0)
            sp_text_add(&out, "%s%s=%d%d%d", out.size ? " " : "", n->name, t[0],
                        t[1], t[2]);
    }
    e = sp_text_check(&out);
    if (e == SP_OK)
        *text = sp_copy(sp_text_string(&out), out.size);
    if (e == SP_OK && !*text)
        e = sp_fail(SP_ENOMEM, "out of memory");
    sp_text_free(&out);
    return e;
}
