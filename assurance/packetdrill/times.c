/*
 * Preloaded where packetdrill runs in virtual time. It looks for the beginning of a tick by calling times() until that changes, but computing
 * takes no virtual time, and so the tick never came: here the call takes a little.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

clock_t times(struct tms *into)
{
	const struct timespec pause = { .tv_nsec = 20000 };

	nanosleep(&pause, NULL);
	return syscall(SYS_times, into);
}
