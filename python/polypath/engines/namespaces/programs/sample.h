/* Reading a socket's state. */
#ifndef POLYPATH_SAMPLE_H
#define POLYPATH_SAMPLE_H

#include "guest.h"

/* Writes a line C for the connection and a line S for each of its subflows. */
void sample_socket(FILE *log, int descriptor, bool mptcp, int64_t now, uint64_t received);

/* tcp, mptcp, or fallback for an MPTCP socket that has become plain TCP. */
const char *transport_name(int descriptor, bool mptcp);

#endif
