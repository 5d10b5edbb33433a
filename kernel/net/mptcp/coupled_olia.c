// SPDX-License-Identifier: GPL-2.0
/* olia: opportunistic linked increases (draft-khalili-mptcp-congestion-control-05;
 * Khalili et al., CoNEXT 2012).
 *
 * For each packet acknowledged the window grows by
 *   (w_r / rtt_r^2) / (sum_p w_p / rtt_p)^2 + alpha_r / w_r
 * with alpha_r positive on the paths that transfer most between losses and have
 * no largest window, negative on those of largest window, n the number of paths:
 *   +1 / (n |B \ M|) in B \ M,  -1 / (n |M|) in M,  0 elsewhere or if B \ M is empty;
 *   B: largest l_p / rtt_p^2,  M: largest w_p,
 *   l_p: bytes acknowledged since the last loss or between the last two, the larger.
 * On loss the window is halved, down to one packet.
 */

#include <linux/module.h>
#include "coupled.h"

static u64 quality(const struct coupled_path *path)
{
	u64 per_rtt = div_u64(min_t(u64, path->between_losses, U64_MAX >> 20) << 20, path->rtt_us);

	return div_u64(min_t(u64, per_rtt, U64_MAX >> 10) << 10, path->rtt_us);
}

/* alpha_r, scaled by COUPLED_ONE */
static s64 olia_alpha(const struct coupled_view *view)
{
	unsigned int i, collected = 0, largest_paths = 0;
	u64 best = 0;
	u32 largest = 0;
	bool mine_collected = false;

	for (i = 0; i < view->count; i++) {
		best = max(best, quality(&view->path[i]));
		largest = max(largest, view->path[i].cwnd);
	}
	for (i = 0; i < view->count; i++) {
		const struct coupled_path *path = &view->path[i];

		if (path->cwnd == largest) {
			largest_paths++;
		} else if (quality(path) == best) {
			collected++;
			mine_collected |= path->self;
		}
	}
	if (!collected)
		return 0;
	if (mine_collected)
		return COUPLED_ONE / (view->count * collected);
	if (view->path[view->self].cwnd == largest)
		return -(COUPLED_ONE / (s64)(view->count * largest_paths));
	return 0;
}

static s64 olia_increase(const struct coupled_view *view)
{
	const struct coupled_path *self = &view->path[view->self];

	return (s64)(coupled_share(view, self) >> COUPLED_SHARE) + div_s64(olia_alpha(view), self->cwnd);
}

static void olia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_cong_avoid(sk, ack, acked, olia_increase);
}

static u32 olia_ssthresh(struct sock *sk)
{
	struct coupled_view view;

	if (!coupled_look(sk, &view))
		return tcp_reno_ssthresh(sk);
	return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 1U);
}

static struct tcp_congestion_ops olia = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= coupled_init,
	.release	= coupled_release,
	.set_state	= coupled_set_state,
	.ssthresh	= olia_ssthresh,
	.cong_avoid	= olia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.name		= "olia",
	.owner		= THIS_MODULE,
};

static int __init olia_register(void)
{
	BUILD_BUG_ON(sizeof(struct coupled) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&olia);
}
late_initcall(olia_register);
