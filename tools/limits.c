/* What control groups allow: cores and memory.
 *
 * Source: "Control Group v2" and "CFS Bandwidth Control", Linux documentation:
 *         a process has the tightest limits of its group and all above it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

enum { PATH_ROOM = 4096, LINE_ROOM = 256 };

bool sp_first_line(const char *path, char *line, int room)
{
    FILE *f = fopen(path, "r");
    bool read = f && fgets(line, room, f);

    if (f)
        fclose(f);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read;
}

/* The first line of FOLDER/NAME. */
static bool line_in(const char *folder, const char *name, char *line)
{
    char path[PATH_ROOM];

    return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_ROOM &&
           sp_first_line(path, line, LINE_ROOM);
}

/* A positive number; "max", "-1" and what else is none limit nothing. */
static double number(const char *text)
{
    char *end;
    double x = strtod(text, &end);

    return end != text && x > 0 ? x : INFINITY;
}

/* Version 2: "QUOTA PERIOD" in one file; version 1: a file for each. */
static double cpus_in(const char *folder)
{
    char line[LINE_ROOM], period[LINE_ROOM];
    char *gap;

    if (line_in(folder, "cpu.max", line)) {
        gap = strchr(line, ' ');
        return gap ? number(line) / number(gap + 1) : INFINITY;
    }
    if (line_in(folder, "cpu.cfs_quota_us", line) &&
        line_in(folder, "cpu.cfs_period_us", period))
        return number(line) / number(period);
    return INFINITY;
}

static double bytes_in(const char *folder)
{
    char line[LINE_ROOM];

    if (line_in(folder, "memory.max", line) ||
        line_in(folder, "memory.limit_in_bytes", line))
        return number(line);
    return INFINITY;
}

/* `folder` is ROOT/GROUP: look there and at all above, up to ROOT. */
static void climb(sp_limits *l, char *folder, size_t root)
{
    for (;;) {
        char *last;

        l->cpus = fmin(l->cpus, cpus_in(folder));
        l->bytes = fmin(l->bytes, bytes_in(folder));
        last = strrchr(folder, '/');
        if (!last || (size_t)(last - folder) < root)
            return;
        *last = '\0';
    }
}

/* One line, "ID:CONTROLLERS:GROUP": below ROOT in version 2, which names no
 * controllers, else below ROOT/CONTROLLERS. In a container the group may be
 * what the host calls it, and ROOT itself the container's. */
static void look(sp_limits *l, char *line, const char *root)
{
    char *controllers = strchr(line, ':'), *group;
    char folder[PATH_ROOM];
    int start;

    group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    start = snprintf(folder, sizeof folder, "%s%s%s", root,
                     *controllers ? "/" : "", controllers);
    if (start < PATH_ROOM &&
        snprintf(folder + start, sizeof folder - (size_t)start, "%s", group) <
            PATH_ROOM - start)
        climb(l, folder, (size_t)start);
}

sp_limits sp_limits_read(const char *list, const char *root)
{
    sp_limits l = { INFINITY, INFINITY };
    char line[PATH_ROOM];
    FILE *f = fopen(list, "r");

    if (!f)
        return l;
    while (fgets(line, sizeof line, f))
        look(&l, line, root);
    fclose(f);
    return l;
}
