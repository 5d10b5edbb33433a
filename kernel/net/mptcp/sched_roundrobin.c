// SPDX-License-Identifier: GPL-2.0
/* roundrobin: each subflow with room in its window takes a segment in turn.
 *
 * Small writes alternate strictly. A writer that fills the send buffer gets
 * whatever the windows let through, since full subflows are passed over
 * (the out-of-tree kernel's cwnd_limited=1).
 */

#define pr_fmt(fmt) "MPTCP: " fmt

#include "lab.h"

static int roundrobin_get_send(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *path;
	struct lab_paths paths;
	bool wrapped;

	lab_gather(msk, &paths);
	path = lab_next(msk, &paths, NULL, &wrapped);
	return path ? lab_choose(msk, path, lab_segment(path)) : -EINVAL;
}

LAB_SCHEDULER(roundrobin, "roundrobin");

static int __init roundrobin_register(void)
{
	return mptcp_register_scheduler(&mptcp_sched_roundrobin);
}
late_initcall(roundrobin_register);
