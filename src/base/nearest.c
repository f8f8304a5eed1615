#include <ctype.h>
#include <string.h>

#include "sprat/config.h"

enum { LONGEST = 48 }; /* longer words get no suggestion */

static int least(int a, int b) { return a < b ? a : b; }

/* Insertions, deletions, substitutions and exchanges of neighbours that turn
 * one word into the other; letters are compared without case. */
static int distance(const char *x, size_t n, const char *y, size_t m)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= m; j++)
        above[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int a = tolower((unsigned char)x[i - 1]), *spare;

        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int b = tolower((unsigned char)y[j - 1]);

            row[j] =
                least(above[j - 1] + (a != b), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a == tolower((unsigned char)y[j - 2]) &&
                b == tolower((unsigned char)x[i - 2]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[m];
}

const char *sp_nearest(const char *word,
                       const char *(*next)(const void *arg, size_t i),
                       const void *arg)
{
    size_t n = strlen(word);
    /* One slip in a short word, one in three letters of a long one. */
    int best = n < 6 ? 1 : (int)(n / 3);
    const char *nearest = NULL, *candidate;

    if (n > LONGEST)
        return NULL;
    for (size_t i = 0; (candidate = next(arg, i)); i++) {
        size_t m = strlen(candidate);
        int d = m > LONGEST ? LONGEST : distance(word, n, candidate, m);

        if (d < (int)n && d < best + (nearest == NULL)) {
            best = d;
            nearest = candidate;
        }
    }
    return nearest;
}
