// SPDX-License-Identifier: GPL-2.0
/* balanced: lowest smoothed RTT first, but no subflow carries more than
 * 50 + epsilon per cent of the bytes of a sliding window, so that whoever
 * listens on one path never sees more than that.
 *
 * The window is exponential: counts are halved whenever they reach WINDOW.
 * Where the only subflow with room is at its cap, the data waits. A connection
 * that has one subflow has no cap. epsilon is in the name: balanced0,
 * balanced1, balanced5, balanced10, balanced20; balanced is balanced5.
 */

#define pr_fmt(fmt) "MPTCP: " fmt

#include "lab.h"

#define WINDOW	(1 << 20)

static u64 account(const struct lab_paths *paths)
{
	u64 total = 0;
	unsigned int i;

	for (i = 0; i < paths->count; i++) {
		paths->path[i]->lab_bytes += lab_newly_sent(paths->path[i]);
		total += paths->path[i]->lab_bytes;
	}
	if (total < WINDOW)
		return total;

	for (total = 0, i = 0; i < paths->count; i++) {
		paths->path[i]->lab_bytes /= 2;
		total += paths->path[i]->lab_bytes;
	}
	return total;
}

/* True at least for the subflow that carried least, so the data never waits for good. */
static bool within_cap(const struct mptcp_subflow_context *path, u64 total, unsigned int percent)
{
	return path->lab_bytes * 100 <= (total + lab_segment(path)) * percent;
}

static int send_within(struct mptcp_sock *msk, unsigned int epsilon)
{
	struct lab_paths paths;
	unsigned int i;
	u64 total;

	lab_gather(msk, &paths);
	total = account(&paths);
	for (i = 0; i < paths.count; i++) {
		struct mptcp_subflow_context *path = paths.path[i];

		if (lab_has_room(path) &&
		    (paths.count == 1 || within_cap(path, total, 50 + epsilon)))
			return lab_choose(msk, path, lab_segment(path));
	}
	return -EINVAL;
}

#define BALANCED(ID, EPSILON, NAME)						\
static int balanced##ID##_get_send(struct mptcp_sock *msk)			\
{										\
	return send_within(msk, EPSILON);					\
}										\
LAB_SCHEDULER(balanced##ID, NAME)

BALANCED(, 5, "balanced");
BALANCED(0, 0, "balanced0");
BALANCED(1, 1, "balanced1");
BALANCED(5, 5, "balanced5");
BALANCED(10, 10, "balanced10");
BALANCED(20, 20, "balanced20");

static struct mptcp_sched_ops *const balanced[] = {
	&mptcp_sched_balanced, &mptcp_sched_balanced0, &mptcp_sched_balanced1,
	&mptcp_sched_balanced5, &mptcp_sched_balanced10, &mptcp_sched_balanced20,
};

static int __init balanced_register(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < ARRAY_SIZE(balanced); i++)
		ret = mptcp_register_scheduler(balanced[i]);
	return ret;
}
late_initcall(balanced_register);
