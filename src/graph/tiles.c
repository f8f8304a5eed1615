/* Which of Winograd's tiles a graph's convolutions use: as it is set, as an
 * earlier program chose, or by the kernels' rule. */
#include <string.h>

#include "base/text.h"
#include "graph/program.h"

/* Digits of a record: F(2 x 2), F(4 x 4), or direct. */
static bool read_digits(const char *text, int tile[SP_TILED_PASSES])
{
    for (int i = 0; i < SP_TILED_PASSES; i++) {
        if (text[i] != '0' && text[i] != '2' && text[i] != '4')
            return false;
        tile[i] = text[i] - '0';
    }
    return true;
}

/* At an entry that should be another, or one too many. Manifests are sealed, so
 * most likely the configuration was changed. */
static sp_err misfit(const char *name, const char *entry)
{
    return sp_fail(
        SP_EARG,
        "%s%sthe checkpoint's record of Winograd tiles does not fit this "
        "network, from \"%.60s\" on: it is of another network, or damaged; use "
        "the settings of the run's own model, or compute without the record: "
        "train.winograd: off (or 2, 4) in the run's config.yaml, with results "
        "that differ in their last bits",
        name, name[0] ? ": " : "", entry);
}

/* Take the next entry of a record, "name=444", and the space behind it. */
static sp_err follow(const char **record, const char *name,
                     int tile[SP_TILED_PASSES])
{
    const char *at = *record;
    size_t length = strlen(name);

    if (strncmp(at, name, length) != 0 || at[length] != '=' ||
        !read_digits(at + length + 1, tile))
        return misfit(name, at);
    at += length + 1 + SP_TILED_PASSES;
    *record = at + strspn(at, " ");
    return SP_OK;
}

sp_err sp_tiles_choose(const sp_node *n, int tile[SP_TILED_PASSES])
{
    /* An empty record stands for none. */
    static const int fixed[] = { [SP_WINOGRAD_AUTO] = 0,
                                 [SP_WINOGRAD_OFF] = 0,
                                 [SP_WINOGRAD_2] = 2,
                                 [SP_WINOGRAD_4] = 4 };
    sp_graph *g = n->graph;

    if (g->opt.winograd == SP_WINOGRAD_AUTO && g->tiles && *g->opt.tiles)
        return follow(&g->tiles, n->name, tile);
    if (g->opt.winograd != SP_WINOGRAD_AUTO || g->tiles)
        for (int i = 0; i < SP_TILED_PASSES; i++)
            tile[i] = fixed[g->opt.winograd];
    return SP_OK;
}

sp_err sp_tiles_end(sp_graph *g)
{
    const char *left = g->tiles;

    g->tiles = g->opt.tiles = NULL;
    if (left && *left)
        return misfit("", left);
    return SP_OK;
}

sp_err sp_graph_tiles(const sp_graph *g, char **text)
{
    sp_text out = { 0 };
    sp_err e;

    *text = NULL;
    if (g->opt.winograd != SP_WINOGRAD_AUTO || g->opt.reference)
        return SP_OK;
    for (int i = 0; i < g->steps.count; i++) {
        const sp_node *n = &sp_step_at(g, i)->node;
        const int *t = n->tile;
        if (n->tiled)
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
