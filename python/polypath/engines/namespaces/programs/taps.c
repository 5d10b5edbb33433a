/* taps FIRST NAMESPACE:DEVICE.. -- COMMAND..: runs the command with TAP interfaces as its descriptors from FIRST on.
 *
 * Its timers are exact: the kernel's habit of grouping wake-ups (PR_SET_TIMERSLACK) is off.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

static void attach(char *where, int as)
{
	char *device = strchr(where, ':');
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int descriptor;

	if (!device)
		die("%s is no NAMESPACE:DEVICE", where);
	*device++ = 0;
	enter_namespace(where);
	strncpy(request.ifr_name, device, IFNAMSIZ - 1);
	descriptor = open("/dev/net/tun", O_RDWR);
	if (descriptor < 0 || ioctl(descriptor, TUNSETIFF, &request))
		die("TAP interface %s of %s: %s", device, where, strerror(errno));
	if (dup2(descriptor, as) < 0)
		/* dup2(2): EBADF is a number beyond RLIMIT_NOFILE */
		die("descriptor %d: %s", as, strerror(errno == EBADF ? EMFILE : errno));
	close(descriptor);
}

int taps_main(int count, char **argument)
{
	int first = count ? atoi(argument[0]) : 0, i;

	for (i = 1; i < count && strcmp(argument[i], "--"); i++)
		attach(argument[i], first + i - 1);
	if (!first || i + 1 >= count)
		die("taps FIRST NAMESPACE:DEVICE.. -- COMMAND..");
	prctl(PR_SET_TIMERSLACK, 1);
	execv(argument[i + 1], argument + i + 1);
	die("%s: %s", argument[i + 1], strerror(errno));
}
