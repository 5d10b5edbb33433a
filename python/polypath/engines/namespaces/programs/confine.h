/* What a program of the machine sees on a host of the run. */
#ifndef POLYPATH_CONFINE_H
#define POLYPATH_CONFINE_H

#include "guest.h"

/* The words in a file, each ended by a NUL, and NULL. */
char **read_words(const char *path);

/* A mount namespace of the process's own: the run's names of hosts in place of the machine's, `work` at /run/work, which becomes the
 * working folder. */
void confine(const char *host, const char *work);
/* From now on only /run/work and /run/tmp can be written. */
void seal(void);
/* The environment of programs, and NAME=VALUE on top. */
void set_environment(bool mptcp, char **variable);

#endif
