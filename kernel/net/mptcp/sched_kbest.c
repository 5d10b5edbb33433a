// SPDX-License-Identifier: GPL-2.0
/* kbest: round robin over the k subflows of lowest smoothed RTT.
 *
 * Who belongs to the k is settled anew after each round, and when one of them
 * is gone. A subflow outside the k carries nothing, whatever room it has.
 * k is in the name: kbest1 .. kbest8; kbest is kbest2.
 */

#define pr_fmt(fmt) "MPTCP: " fmt

#include "lab.h"

static u64 best(const struct lab_paths *paths, unsigned int k)
{
	unsigned int i;
	u64 set = 0;

	for (i = 0; i < min(k, paths->count); i++)
		set |= lab_bit(paths->path[i]);
	return set;
}

static u64 present(const struct lab_paths *paths)
{
	return best(paths, paths->count);
}

static int kbest_get_send(struct mptcp_sock *msk, unsigned int k)
{
	struct mptcp_subflow_context *path;
	struct lab_paths paths;
	bool wrapped;

	lab_gather(msk, &paths);
	if (hweight64(msk->lab_set & present(&paths)) < min(k, paths.count))
		msk->lab_set = best(&paths, k);

	path = lab_next(msk, &paths, &msk->lab_set, &wrapped);
	if (path && wrapped) {
		msk->lab_set = best(&paths, k);
		msk->lab_last = 0;
		path = lab_next(msk, &paths, &msk->lab_set, &wrapped);
	}
	return path ? lab_choose(msk, path, lab_segment(path)) : -EINVAL;
}

#define KBEST(K, NAME)								\
static int kbest##K##_get_send(struct mptcp_sock *msk)				\
{										\
	return kbest_get_send(msk, K ? : 2);					\
}										\
LAB_SCHEDULER(kbest##K, NAME)

KBEST(0, "kbest");
KBEST(1, "kbest1");
KBEST(2, "kbest2");
KBEST(3, "kbest3");
KBEST(4, "kbest4");
KBEST(5, "kbest5");
KBEST(6, "kbest6");
KBEST(7, "kbest7");
KBEST(8, "kbest8");

static struct mptcp_sched_ops *const kbest[] = {
	&mptcp_sched_kbest0, &mptcp_sched_kbest1, &mptcp_sched_kbest2,
	&mptcp_sched_kbest3, &mptcp_sched_kbest4, &mptcp_sched_kbest5,
	&mptcp_sched_kbest6, &mptcp_sched_kbest7, &mptcp_sched_kbest8,
};

static int __init kbest_register(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < ARRAY_SIZE(kbest); i++)
		ret = mptcp_register_scheduler(kbest[i]);
	return ret;
}
late_initcall(kbest_register);
