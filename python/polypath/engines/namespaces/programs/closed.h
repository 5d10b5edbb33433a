/* What closed sockets counted. */
#ifndef POLYPATH_CLOSED_H
#define POLYPATH_CLOSED_H

#include <stdio.h>

/* A descriptor on which the kernel tells of TCP sockets that end from now on. */
int closed_open(void);
/* A line T for each that it has told of. */
void closed_hear(int descriptor, FILE *log);
/* A line T for each that is there, also where no program has it any more. */
void closed_dump(FILE *log);

#endif
