/* SPDX-License-Identifier: GPL-2.0 */
/* Congestion controls that look at all subflows of their connection.
 *
 * Each subflow's private area is a member of its connection's group. A group's
 * lock keeps its members' sockets alive while it is held: leaving the group
 * takes it, and comes before a socket is freed.
 */
#ifndef POLYPATH_COUPLED_H
#define POLYPATH_COUPLED_H

#include <net/tcp.h>

/* Fixed point of increases: one packet. Shares have more bits, for balia multiplies them. */
#define COUPLED_ONE	(1 << 24)
#define COUPLED_SHARE	16

struct coupled_group;

struct coupled {
	struct list_head	node;
	struct sock		*sk;
	struct coupled_group	*group;
	/* Increase earned and not yet applied, in 1 / COUPLED_ONE packets. */
	s64			credit;
	/* tcp_sock.bytes_acked at the last loss, and what was acknowledged
	 * between the last two losses.
	 */
	u64			acked_at_loss;
	u64			between_losses;
};

/* One subflow as the formulas see it. */
struct coupled_path {
	u32	cwnd;		/* packets */
	u32	rtt_us;
	u64	rate;		/* cwnd / rtt, scaled by 2^30 */
	u64	between_losses;	/* l_r of OLIA, bytes */
	bool	self;
};

#define COUPLED_MAX_PATHS	32

struct coupled_view {
	struct coupled_path	path[COUPLED_MAX_PATHS];
	unsigned int		count;
	unsigned int		self;
	u64			total_rate;
};

static inline struct coupled *coupled_of(struct sock *sk)
{
	return inet_csk_ca(sk);
}

void coupled_init(struct sock *sk);
void coupled_release(struct sock *sk);

/* The bytes between losses, for olia. */
void coupled_set_state(struct sock *sk, u8 state);

/* A reduction drops the credit, as tcp_init_cwnd_reduction and tcp_enter_loss drop
 * NewReno's snd_cwnd_cnt.
 */
void coupled_drop_credit(struct sock *sk, u8 state);

/* Reads the connection's established subflows. False where this one is alone,
 * or not yet measured: it then behaves as NewReno.
 */
bool coupled_look(struct sock *sk, struct coupled_view *view);

/* rate_p / rtt_p / (sum of rates)^2, scaled by COUPLED_ONE << COUPLED_SHARE: packets
 * to add for each packet acknowledged.
 */
u64 coupled_share(const struct coupled_view *view, const struct coupled_path *path);

/* Slow start, or the credit that `increase` gives for each acknowledged packet. */
void coupled_cong_avoid(struct sock *sk, u32 ack, u32 acked,
			s64 (*increase)(const struct coupled_view *view));

#endif
