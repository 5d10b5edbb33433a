// SPDX-License-Identifier: GPL-2.0
/* Three decisions of four are for the first subflow, the fourth is for the second;
 * a subflow without room leaves its turn to the other. threefold.py is the same.
 */
#include "own.h"

static struct mptcp_subflow_context *other(const struct lab_paths *paths,
					   const struct mptcp_subflow_context *than)
{
	struct mptcp_subflow_context *found = NULL;

	for (unsigned int i = 0; i < paths->count; i++) {
		struct mptcp_subflow_context *path = paths->path[i];

		if (path == than || !lab_has_room(path))
			continue;
		if (!found || path->subflow_id < found->subflow_id)
			found = path;
	}
	return found;
}

static int threefold(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *first, *second;
	struct lab_paths paths;

	lab_gather(msk, &paths);
	first = other(&paths, NULL);
	if (!first)
		return -EINVAL;
	second = other(&paths, first);
	if (second && msk->lab_set % 4 == 3)
		first = second;
	msk->lab_set++;
	return lab_choose(msk, first, lab_segment(first));
}
OWN_SCHEDULER(threefold);
