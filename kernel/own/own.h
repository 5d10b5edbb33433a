/* SPDX-License-Identifier: GPL-2.0 */
/* For a packet scheduler in a file beside a scenario (`scheduler = "mine.c"`):
 * OWN_SCHEDULER(choose) makes `static int choose(struct mptcp_sock *msk)` the
 * scheduler. It hands a subflow of lab_gather() to lab_choose() and returns what
 * that returns, or -EINVAL where none may carry data now (lab.h).
 *
 * msk->lab_set, lab_last, lab_lambda, lab_since_us, lab_blocked and lab_waiting
 * are its state of a connection, and lab_bytes that of a subflow; all begin as 0.
 */
#ifndef POLYPATH_OWN_H
#define POLYPATH_OWN_H

#include "lab.h"

#define OWN_SCHEDULER(CHOOSE)						\
static int own_get_send(struct mptcp_sock *msk)				\
{									\
	return CHOOSE(msk);						\
}									\
									\
LAB_SCHEDULER(own, OWN_NAME);						\
									\
static int __init own_register(void)					\
{									\
	return mptcp_register_scheduler(&mptcp_sched_own);		\
}									\
late_initcall(own_register)

#endif
