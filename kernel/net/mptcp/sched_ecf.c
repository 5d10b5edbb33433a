// SPDX-License-Identifier: GPL-2.0
/* ecf: earliest completion first (Lim et al., CoNEXT 2017).
 *
 * With k bytes not yet sent, the slower subflow is left idle where waiting for
 * the fast one's window ends the transfer earlier:
 *   (1 + k / cwnd_f) srtt_f < (1 + waiting beta) (srtt_s + delta)
 *   and (k / cwnd_s) srtt_s >= 2 srtt_f + delta
 * with beta = 1/4 and delta the larger of both RTT deviations.
 */

#define pr_fmt(fmt) "MPTCP: " fmt

#include "lab.h"

/* 1 / beta */
#define BETA_INVERSE	4

static u64 window_bytes(const struct mptcp_subflow_context *path)
{
	return max_t(u64, 1, (u64)tcp_snd_cwnd(lab_tp(path)) * lab_segment(path));
}

/* As tcp_info reports it; rttvar_us is never less than the minimum timeout. */
static u64 deviation(const struct mptcp_subflow_context *path)
{
	return READ_ONCE(lab_tp(path)->mdev_us) >> 2;
}

static bool better_to_wait(struct mptcp_sock *msk, const struct mptcp_subflow_context *fast,
			   const struct mptcp_subflow_context *slow)
{
	u64 unsent = msk->write_seq - msk->snd_nxt;
	u64 delta = max(deviation(fast), deviation(slow));
	u64 window_f = window_bytes(fast), window_s = window_bytes(slow);
	u64 srtt_f = lab_srtt(fast), srtt_s = lab_srtt(slow);
	u64 fast_ends = srtt_f + div64_u64(unsent * srtt_f, window_f);
	u64 slow_ends = div64_u64(unsent * srtt_s, window_s);

	if (fast_ends * BETA_INVERSE >= (srtt_s + delta) * (BETA_INVERSE + msk->lab_waiting)) {
		msk->lab_waiting = false;
		return false;
	}
	if (slow_ends < 2 * srtt_f + delta)
		return false;
	msk->lab_waiting = true;
	return true;
}

static int ecf_get_send(struct mptcp_sock *msk)
{
	struct lab_paths paths;
	unsigned int i;

	lab_gather(msk, &paths);
	for (i = 0; i < paths.count; i++) {
		struct mptcp_subflow_context *path = paths.path[i];

		if (!lab_has_room(path))
			continue;
		if (i && better_to_wait(msk, paths.path[0], path))
			return -EINVAL;
		return lab_choose(msk, path, lab_segment(path));
	}
	return -EINVAL;
}

LAB_SCHEDULER(ecf, "ecf");

static int __init ecf_register(void)
{
	return mptcp_register_scheduler(&mptcp_sched_ecf);
}
late_initcall(ecf_register);
