/* What the replaced calls share; faults.c says what they are for. */
#ifndef SP_TESTS_FAULTS_H
#define SP_TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Whether this call is to fail; errno is then set. */
bool fault_memory(const char *name, const void *caller);
bool fault_file(const char *name, int error, const void *caller);

/* Lose what a stream holds, as on a full disk: its error is then set. */
void fault_stream(FILE *f);

int __real_open64(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t n);
int __real_close(int fd);
int __real_fflush(FILE *f);

#endif
