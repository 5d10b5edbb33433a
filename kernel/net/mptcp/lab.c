// SPDX-License-Identifier: GPL-2.0
/* What Polypath's packet schedulers share. */

#define pr_fmt(fmt) "MPTCP: " fmt

#include "lab.h"

static bool is_backup(const struct mptcp_subflow_context *path)
{
	return path->backup || path->request_bkup;
}

static void insert_by_srtt(struct lab_paths *paths, struct mptcp_subflow_context *path)
{
	unsigned int i = paths->count++;

	while (i > 0 && lab_srtt(paths->path[i - 1]) > lab_srtt(path)) {
		paths->path[i] = paths->path[i - 1];
		i--;
	}
	paths->path[i] = path;
}

static void gather(struct mptcp_sock *msk, struct lab_paths *paths, bool backups)
{
	struct mptcp_subflow_context *path;

	paths->count = 0;
	mptcp_for_each_subflow(msk, path) {
		if (paths->count < LAB_MAX_PATHS && is_backup(path) == backups &&
		    mptcp_subflow_active(path))
			insert_by_srtt(paths, path);
	}
}

void lab_gather(struct mptcp_sock *msk, struct lab_paths *paths)
{
	gather(msk, paths, false);
	if (!paths->count)
		gather(msk, paths, true);
	mptcp_set_timeout((struct sock *)msk);
}

bool lab_has_room(const struct mptcp_subflow_context *path)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(path);
	const struct tcp_sock *tp = lab_tp(path);
	u32 unsent = READ_ONCE(tp->write_seq) - tp->snd_nxt;
	u32 waiting = DIV_ROUND_UP(unsent, lab_segment(path));

	return sk_stream_memory_free(ssk) &&
	       tcp_packets_in_flight(tp) + waiting < tcp_snd_cwnd(tp);
}

int lab_choose(struct mptcp_sock *msk, struct mptcp_subflow_context *path, u32 quantum)
{
	u64 end = lab_window_end(msk);

	if (before64(msk->snd_nxt, end))
		msk->snd_burst = min_t(u64, quantum, end - msk->snd_nxt);
	msk->lab_last = path->subflow_id;
	mptcp_subflow_set_scheduled(path, true);
	return 0;
}

struct mptcp_subflow_context *lab_next(struct mptcp_sock *msk, const struct lab_paths *paths,
				       const u64 *set, bool *wrapped)
{
	struct mptcp_subflow_context *next = NULL, *first = NULL;
	unsigned int i;

	for (i = 0; i < paths->count; i++) {
		struct mptcp_subflow_context *path = paths->path[i];

		if ((set && !(*set & lab_bit(path))) || !lab_has_room(path))
			continue;
		if (!first || path->subflow_id < first->subflow_id)
			first = path;
		if (path->subflow_id > msk->lab_last &&
		    (!next || path->subflow_id < next->subflow_id))
			next = path;
	}
	*wrapped = !next;
	return next ? : first;
}

u32 lab_newly_sent(struct mptcp_subflow_context *path)
{
	u32 now = READ_ONCE(lab_tp(path)->write_seq);
	u32 sent = path->lab_seen_valid ? now - path->lab_seen : 0;

	path->lab_seen = now;
	path->lab_seen_valid = true;
	return sent;
}

int lab_get_retrans(struct mptcp_sock *msk)
{
	struct sock *ssk = mptcp_subflow_get_retrans(msk);

	if (!ssk)
		return -EINVAL;
	mptcp_subflow_set_scheduled(mptcp_subflow_ctx(ssk), true);
	return 0;
}
