/* SPDX-License-Identifier: GPL-2.0 */
/* What Polypath's packet schedulers share: which subflows may carry data now,
 * and how a choice is handed to the push loop.
 *
 * A decision covers what the push loop sends before it asks again: at most
 * snd_burst bytes, rounded up to the end of a data fragment.
 */
#ifndef POLYPATH_LAB_H
#define POLYPATH_LAB_H

#include <linux/module.h>
#include <linux/version.h>
#include "protocol.h"

#define LAB_MAX_PATHS	64

/* The subflows that a scheduler may choose from, lowest smoothed RTT first. */
struct lab_paths {
	struct mptcp_subflow_context *path[LAB_MAX_PATHS];
	unsigned int count;
};

/* Subflows in use: all that can send, or the backups where nothing else can
 * (RFC 8684 section 3.3.8).
 */
void lab_gather(struct mptcp_sock *msk, struct lab_paths *paths);

/* Whether the subflow would transmit more data at once: its window has room. */
bool lab_has_room(const struct mptcp_subflow_context *path);

/* Chooses the subflow for at most `quantum` bytes; returns 0. */
int lab_choose(struct mptcp_sock *msk, struct mptcp_subflow_context *path, u32 quantum);

/* The ready path that follows the one chosen last in the order of subflow ids,
 * among those that `set` has (NULL: any); `wrapped` tells that the order began
 * anew. NULL where none is ready.
 */
struct mptcp_subflow_context *lab_next(struct mptcp_sock *msk, const struct lab_paths *paths,
				       const u64 *set, bool *wrapped);

/* Bytes handed to the subflow since the last call. */
u32 lab_newly_sent(struct mptcp_subflow_context *path);

int lab_get_retrans(struct mptcp_sock *msk);

static inline struct tcp_sock *lab_tp(const struct mptcp_subflow_context *path)
{
	return tcp_sk(mptcp_subflow_tcp_sock(path));
}

/* Smoothed round-trip time in microseconds, at least one. */
static inline u32 lab_srtt(const struct mptcp_subflow_context *path)
{
	return max(READ_ONCE(lab_tp(path)->srtt_us) >> 3, 1U);
}

static inline u64 lab_bit(const struct mptcp_subflow_context *path)
{
	return BIT_ULL(path->subflow_id % 64);
}

/* Where the peer's window for the connection ends, as a data sequence number. */
static inline u64 lab_window_end(const struct mptcp_sock *msk)
{
	return READ_ONCE(msk->wnd_end);
}

/* One segment: the smallest decision. */
static inline u32 lab_segment(const struct mptcp_subflow_context *path)
{
	return max(READ_ONCE(lab_tp(path)->mss_cache), 1U);
}

/* The operations of the scheduler NAME: ID_get_send chooses for new data. Before
 * Linux 6.16 one operation chose for new data and for what is sent again.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define LAB_SCHEDULER(ID, NAME)							\
static struct mptcp_sched_ops mptcp_sched_##ID = {				\
	.get_send	= ID##_get_send,					\
	.get_retrans	= lab_get_retrans,					\
	.name		= NAME,							\
	.owner		= THIS_MODULE,						\
}
#else
#define LAB_SCHEDULER(ID, NAME)							\
static int ID##_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data) \
{										\
	return data->reinject ? lab_get_retrans(msk) : ID##_get_send(msk);	\
}										\
static struct mptcp_sched_ops mptcp_sched_##ID = {				\
	.get_subflow	= ID##_get_subflow,					\
	.name		= NAME,							\
	.owner		= THIS_MODULE,						\
}
#endif

#endif
