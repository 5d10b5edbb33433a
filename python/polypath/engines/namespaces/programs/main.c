/* The guest's programs in one file, chosen by the first argument. */

#include "guest.h"

#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

static int halt_main(int count, char **argument)
{
	(void)count;
	(void)argument;
	sync();
	return reboot(RB_POWER_OFF);
}

static const struct {
	const char *name;
	int (*main)(int count, char **argument);
} parts[] = {
	{ "run", run_main },
	{ "app", app_main },
	{ "iperf3", iperf3_main },
	{ "datagrams", datagram_main },
	{ "ping", ping_main },
	{ "links", links_main },
	{ "bridge", bridge_main },
	{ "capture", capture_main },
	{ "paths", paths_main },
	{ "offload", offload_main },
	{ "taps", taps_main },
	{ "program", program_main },
	{ "shell", shell_main },
	{ "halt", halt_main },
};

int main(int count, char **argument)
{
	load_origin();
	for (size_t i = 0; count > 1 && i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(argument[1], parts[i].name))
			return parts[i].main(count - 2, argument + 2);
	die("which part?");
}
