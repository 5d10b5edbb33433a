// SPDX-License-Identifier: GPL-2.0
/* balia: balanced linked adaptation (draft-walid-mptcp-congestion-control;
 * Peng et al., IEEE/ACM Transactions on Networking 2016).
 *
 * With x_r = w_r / rtt_r and alpha_r = max_p(x_p) / x_r, each packet acknowledged
 * adds x_r / (rtt_r (sum_p x_p)^2) (1 + alpha_r) / 2 (4 + alpha_r) / 5, and a loss
 * takes w_r / 2 min(alpha_r, 3/2), down to one packet. alpha_r is not rounded, and
 * what is left of the window is rounded down, as NewReno's half is.
 */

#include <linux/module.h>
#include "coupled.h"

/* Fixed point of alpha, and its largest value */
#define ALPHA_ONE	1024ULL
#define ALPHA_MOST	(ALPHA_ONE * 1000)

static u64 balia_alpha(const struct coupled_view *view)
{
	u64 fastest = 0, own = max_t(u64, view->path[view->self].rate, 1);
	unsigned int i;

	for (i = 0; i < view->count; i++)
		fastest = max(fastest, view->path[i].rate);
	return min(div64_u64(min_t(u64, fastest, U64_MAX / ALPHA_ONE) * ALPHA_ONE, own), ALPHA_MOST);
}

static s64 balia_increase(const struct coupled_view *view)
{
	u64 alpha = balia_alpha(view);
	u64 share = coupled_share(view, &view->path[view->self]);

	share = div_u64(share * (ALPHA_ONE + alpha), 2 * ALPHA_ONE);
	return div_u64(share * (4 * ALPHA_ONE + alpha), 5 * ALPHA_ONE) >> COUPLED_SHARE;
}

static void balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_cong_avoid(sk, ack, acked, balia_increase);
}

static u32 balia_ssthresh(struct sock *sk)
{
	struct coupled_view view;
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	u64 alpha;

	if (!coupled_look(sk, &view))
		return tcp_reno_ssthresh(sk);
	alpha = min(balia_alpha(&view), ALPHA_ONE * 3 / 2);
	return max_t(u32, div_u64(cwnd * (2 * ALPHA_ONE - alpha), 2 * ALPHA_ONE), 1U);
}

static struct tcp_congestion_ops balia = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= coupled_init,
	.release	= coupled_release,
	.set_state	= coupled_drop_credit,
	.ssthresh	= balia_ssthresh,
	.cong_avoid	= balia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.name		= "balia",
	.owner		= THIS_MODULE,
};

static int __init balia_register(void)
{
	BUILD_BUG_ON(sizeof(struct coupled) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&balia);
}
late_initcall(balia_register);
