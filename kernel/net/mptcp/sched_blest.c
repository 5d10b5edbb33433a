// SPDX-License-Identifier: GPL-2.0
/* blest: lowest smoothed RTT first, but a slower subflow is left idle where its
 * segment would keep the send window closed for the fast one (Ferlin et al.,
 * IFIP Networking 2016).
 *
 * The faster subflow would send X bytes while the slower one's segment is under
 * way: X = mss_f (cwnd_f + (n - 1) / 2) n with n = srtt_s / srtt_f. The slower
 * one is skipped where lambda X exceeds what the window leaves besides its own
 * segments. lambda, in thousandths, grows by a step with each round trip of the
 * fast subflow in which the window did close, and else shrinks by one down to 1.
 */

#define pr_fmt(fmt) "MPTCP: " fmt

#include "lab.h"

#define LAMBDA_LEAST	1000
#define LAMBDA_STEP	10

static void adapt(struct mptcp_sock *msk, u32 srtt_us)
{
	u32 now = (u32)tcp_clock_us();

	if (!msk->lab_lambda) {
		msk->lab_lambda = LAMBDA_LEAST;
		msk->lab_since_us = now;
	}
	if (mptcp_send_head((struct sock *)msk) && !before64(msk->snd_nxt, lab_window_end(msk)))
		msk->lab_blocked = true;
	if (now - msk->lab_since_us < srtt_us)
		return;

	if (msk->lab_blocked)
		msk->lab_lambda = msk->lab_lambda + LAMBDA_STEP;
	else
		msk->lab_lambda = max(msk->lab_lambda - LAMBDA_STEP, LAMBDA_LEAST);
	msk->lab_blocked = false;
	msk->lab_since_us = now;
}

static bool would_block(struct mptcp_sock *msk, const struct mptcp_subflow_context *fast,
			const struct mptcp_subflow_context *slow)
{
	/* in tenths of the fast subflow's round trip */
	u64 n = max_t(u64, 10, (u64)lab_srtt(slow) * 10 / lab_srtt(fast));
	u64 packets = (tcp_snd_cwnd(lab_tp(fast)) * 10ULL + (n - 10) / 2) * n / 100;
	u64 while_slow = packets * lab_segment(fast) * msk->lab_lambda / 1000;
	u64 own = (tcp_packets_in_flight(lab_tp(slow)) + 1ULL) * lab_segment(slow);
	u64 window = lab_window_end(msk) - msk->snd_una;

	return while_slow + own > window;
}

static int blest_get_send(struct mptcp_sock *msk)
{
	struct lab_paths paths;
	unsigned int i;

	lab_gather(msk, &paths);
	if (!paths.count)
		return -EINVAL;
	adapt(msk, lab_srtt(paths.path[0]));
	for (i = 0; i < paths.count; i++) {
		struct mptcp_subflow_context *path = paths.path[i];

		if (!lab_has_room(path))
			continue;
		if (i && would_block(msk, paths.path[0], path))
			return -EINVAL;
		return lab_choose(msk, path, lab_segment(path));
	}
	return -EINVAL;
}

LAB_SCHEDULER(blest, "blest");

static int __init blest_register(void)
{
	return mptcp_register_scheduler(&mptcp_sched_blest);
}
late_initcall(blest_register);
