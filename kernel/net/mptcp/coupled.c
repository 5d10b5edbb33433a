// SPDX-License-Identifier: GPL-2.0
/* Groups of subflows for coupled congestion control. */

#include <linux/module.h>
#include "protocol.h"
#include "coupled.h"

struct coupled_group {
	struct list_head	node;
	struct list_head	members;
	/* Held, so that no other connection comes to lie there meanwhile. */
	struct sock		*connection;
};

static LIST_HEAD(groups);
static DEFINE_SPINLOCK(groups_lock);

static struct coupled_group *find_or_create(struct sock *connection)
{
	struct coupled_group *group;

	list_for_each_entry(group, &groups, node)
		if (group->connection == connection)
			return group;

	group = kzalloc(sizeof(*group), GFP_ATOMIC);
	if (group) {
		sock_hold(connection);
		group->connection = connection;
		INIT_LIST_HEAD(&group->members);
		list_add(&group->node, &groups);
	}
	return group;
}

/* A passively opened subflow learns its connection after its congestion control
 * was set up, so joining waits for the first acknowledgement. It also waits for
 * the set-up: a lost SYN asks for a threshold before it, and a socket that is
 * never set up is never released either.
 */
static bool join(struct sock *sk)
{
	struct coupled *ca = coupled_of(sk);
	struct mptcp_subflow_context *subflow;

	if (ca->group)
		return true;
	if (!inet_csk(sk)->icsk_ca_initialized || !sk_is_mptcp(sk))
		return false;
	subflow = mptcp_subflow_ctx(sk);
	if (!subflow || !subflow->conn)
		return false;

	ca->group = find_or_create(subflow->conn);
	if (!ca->group)
		return false;
	ca->sk = sk;
	list_add_tail(&ca->node, &ca->group->members);
	return true;
}

void coupled_init(struct sock *sk)
{
	memset(coupled_of(sk), 0, sizeof(struct coupled));
}
EXPORT_SYMBOL_GPL(coupled_init);

void coupled_release(struct sock *sk)
{
	struct coupled *ca = coupled_of(sk);
	struct coupled_group *empty = NULL;

	spin_lock_bh(&groups_lock);
	if (ca->group) {
		list_del(&ca->node);
		if (list_empty(&ca->group->members)) {
			empty = ca->group;
			list_del(&empty->node);
		}
		ca->group = NULL;
	}
	spin_unlock_bh(&groups_lock);
	if (empty) {
		sock_put(empty->connection);
		kfree(empty);
	}
}
EXPORT_SYMBOL_GPL(coupled_release);

void coupled_set_state(struct sock *sk, u8 state)
{
	struct coupled *ca = coupled_of(sk);
	u64 acked = tcp_sk(sk)->bytes_acked;

	if (state < TCP_CA_CWR)
		return;
	if (acked == ca->acked_at_loss)
		return;
	ca->between_losses = acked - ca->acked_at_loss;
	ca->acked_at_loss = acked;
}
EXPORT_SYMBOL_GPL(coupled_set_state);

void coupled_drop_credit(struct sock *sk, u8 state)
{
	if (state >= TCP_CA_CWR)
		coupled_of(sk)->credit = 0;
}
EXPORT_SYMBOL_GPL(coupled_drop_credit);

/* A window that is being reduced counts as what it is being reduced to. */
static u32 window(const struct tcp_sock *tp, const struct sock *sk)
{
	u32 cwnd = tcp_snd_cwnd(tp);

	return inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery ? min(cwnd, tp->snd_ssthresh) : cwnd;
}

static void read_path(struct coupled_path *path, const struct coupled *ca)
{
	const struct tcp_sock *tp = tcp_sk(ca->sk);

	path->cwnd = max(window(tp, ca->sk), 1U);
	path->rtt_us = max(READ_ONCE(tp->srtt_us) >> 3, 1U);
	path->rate = div_u64((u64)path->cwnd << 30, path->rtt_us);
	path->between_losses = max(ca->between_losses,
				   READ_ONCE(tp->bytes_acked) - ca->acked_at_loss);
}

bool coupled_look(struct sock *sk, struct coupled_view *view)
{
	const struct coupled *member;
	bool found = false;

	view->count = 0;
	view->total_rate = 0;

	spin_lock_bh(&groups_lock);
	if (join(sk)) {
		list_for_each_entry(member, &coupled_of(sk)->group->members, node) {
			struct coupled_path *path = &view->path[view->count];

			if (view->count == COUPLED_MAX_PATHS)
				break;
			if (!tcp_sk(member->sk)->srtt_us ||
			    !(BIT(READ_ONCE(member->sk->sk_state)) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT)))
				continue;
			read_path(path, member);
			path->self = member->sk == sk;
			if (path->self) {
				view->self = view->count;
				found = true;
			}
			view->total_rate += path->rate;
			view->count++;
		}
	}
	spin_unlock_bh(&groups_lock);
	return found && view->count > 1 && view->total_rate;
}
EXPORT_SYMBOL_GPL(coupled_look);

u64 coupled_share(const struct coupled_view *view, const struct coupled_path *path)
{
	/* rate / total is at most one: 24 bits; rtt * total is a window scaled by 2^30 */
	u64 fraction = div64_u64(min_t(u64, path->rate, U64_MAX >> 24) << 24, view->total_rate);
	u64 window = mul_u64_u64_shr(path->rtt_us, view->total_rate, 10);

	return div64_u64(fraction << (20 + COUPLED_SHARE), max_t(u64, window, 1));
}
EXPORT_SYMBOL_GPL(coupled_share);

static void apply(struct sock *sk, s64 gained)
{
	struct coupled *ca = coupled_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->credit += gained;
	while (ca->credit >= COUPLED_ONE) {
		ca->credit -= COUPLED_ONE;
		if (tcp_snd_cwnd(tp) < tp->snd_cwnd_clamp)
			tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp) + 1);
	}
	while (ca->credit <= -COUPLED_ONE) {
		ca->credit += COUPLED_ONE;
		if (tcp_snd_cwnd(tp) > 1)
			tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp) - 1);
	}
}

void coupled_cong_avoid(struct sock *sk, u32 ack, u32 acked,
			s64 (*increase)(const struct coupled_view *view))
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct coupled_view view;

	if (!coupled_look(sk, &view)) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	apply(sk, increase(&view) * acked);
}
EXPORT_SYMBOL_GPL(coupled_cong_avoid);
