/* Reading a socket's state. */
#ifndef POLYPATH_SAMPLE_H
#define POLYPATH_SAMPLE_H

#include "guest.h"

/* Writes a line C for the connection and a line S for each of its subflows; `remote` is the peer, which a closed socket has forgotten. */
void sample_socket(FILE *log, int descriptor, bool mptcp, int64_t now, uint64_t received,
		   const struct sockaddr_storage *remote);

/* Payload that the kernel has had in order and the application has taken. */
uint64_t received_bytes(int descriptor, bool mptcp);

/* tcp, mptcp, or fallback for an MPTCP socket that has become plain TCP. */
const char *transport_name(int descriptor, bool mptcp);

#endif
