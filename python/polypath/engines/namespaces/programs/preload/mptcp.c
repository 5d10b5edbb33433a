/* Loaded into a program that knows nothing of Multipath TCP: its TCP sockets become MPTCP sockets. */

#define _GNU_SOURCE
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if ((domain == AF_INET || domain == AF_INET6) && kind == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP))
		protocol = IPPROTO_MPTCP;
	return syscall(SYS_socket, domain, type, protocol);
}
