/* trace_check FILE RANKS FIRST LAST: checks a timeline from outside. */
#include <stdio.h>
#include <stdlib.h>

#include "trace_file.h"

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: trace_check FILE RANKS FIRST LAST\n");
        return 2;
    }
    return trace_faults(argv[1], atoi(argv[2]), atoi(argv[3]), atoi(argv[4]))
               ? EXIT_FAILURE
               : EXIT_SUCCESS;
}
