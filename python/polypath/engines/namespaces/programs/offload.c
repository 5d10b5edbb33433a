/* offload [checksums] DEVICE..: switches segmentation and aggregation off, so that a packet is a packet on the wire; with
 * `checksums`, packets have theirs, which the kernel else leaves out between its own devices. */

#include "guest.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int offload_main(int count, char **argument)
{
	static const uint32_t features[] = { ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM };
	bool whole = count && !strcmp(argument[0], "checksums");
	size_t used = sizeof(features) / sizeof(*features) - !whole;
	int descriptor = socket(AF_INET, SOCK_DGRAM, 0);

	for (int i = whole; i < count; i++) {
		for (size_t f = 0; f < used; f++) {
			struct ethtool_value off = { .cmd = features[f] };
			struct ifreq request = { .ifr_data = (char *)&off };

			strncpy(request.ifr_name, argument[i], IFNAMSIZ - 1);
			if (ioctl(descriptor, SIOCETHTOOL, &request))
				die("%s: %s", argument[i], strerror(errno));
		}
	}
	close(descriptor);
	return 0;
}
