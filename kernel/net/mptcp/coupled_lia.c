// SPDX-License-Identifier: GPL-2.0
/* lia: linked increases (RFC 6356 section 3).
 *
 * For each packet acknowledged the window grows by
 *   min( max_p(w_p / rtt_p^2) / (sum_p w_p / rtt_p)^2 , 1 / w_r )
 * and is halved on loss. alpha is not cached: it is what the windows are now.
 */

#include <linux/module.h>
#include "coupled.h"

static s64 lia_increase(const struct coupled_view *view)
{
	u64 best = 0;
	unsigned int i;

	for (i = 0; i < view->count; i++)
		best = max(best, coupled_share(view, &view->path[i]));
	return min_t(u64, best >> COUPLED_SHARE, COUPLED_ONE / view->path[view->self].cwnd);
}

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_cong_avoid(sk, ack, acked, lia_increase);
}

static struct tcp_congestion_ops lia = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= coupled_init,
	.release	= coupled_release,
	.set_state	= coupled_drop_credit,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= lia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.name		= "lia",
	.owner		= THIS_MODULE,
};

static int __init lia_register(void)
{
	BUILD_BUG_ON(sizeof(struct coupled) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&lia);
}
late_initcall(lia_register);
