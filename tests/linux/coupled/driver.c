/* One connection whose subflows the caller sets, under the kernel's own coupled congestion controls. */

#include <net/tcp.h>

#include "coupled.h"

#define SUBFLOWS 8

static struct sock connection, subflow[SUBFLOWS];
static const struct tcp_congestion_ops *control;

u32 tcp_slow_start(struct sock *sk, u32 acked)
{
	u32 next = min(sk->snd_cwnd + acked, sk->snd_ssthresh);

	acked -= next - sk->snd_cwnd;
	sk->snd_cwnd = next;
	return acked;
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(sk->snd_cwnd / 2, 2u);
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return sk->snd_cwnd;
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	(void)sk, (void)ack, (void)acked;
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	control = ops;
	return 0;
}

/* Established subflows of these windows (packets), round-trip times and bytes acknowledged so far. */
void set_up(unsigned int count, const u32 *cwnd, const u32 *rtt_us, const u64 *bytes_acked)
{
	for (unsigned int i = 0; i < count; i++) {
		subflow[i] = (struct sock){ .sk_state = TCP_ESTABLISHED, .icsk_ca_initialized = true, .conn = &connection,
					    .snd_cwnd = cwnd[i], .snd_ssthresh = 1, .snd_cwnd_clamp = ~0u,
					    .srtt_us = rtt_us[i] << 3, .bytes_acked = bytes_acked[i] };
		control->init(&subflow[i]);
	}
	/* each joins its connection's group with its first acknowledgement */
	for (unsigned int i = 0; i < count; i++)
		control->cong_avoid(&subflow[i], 0, 0);
}

void tear_down(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		control->release(&subflow[i]);
}

/* The subflow reaches a state of congestion and goes back to open. */
void congest(unsigned int me, u8 state, u64 acked_afterwards)
{
	control->set_state(&subflow[me], state);
	control->set_state(&subflow[me], TCP_CA_Open);
	subflow[me].bytes_acked += acked_afterwards;
}

u32 threshold(unsigned int me)
{
	return control->ssthresh(&subflow[me]);
}

/* What a packet's acknowledgement adds to the window, in packets. */
double gain(unsigned int me)
{
	const struct coupled *ca = coupled_of(&subflow[me]);
	double before = subflow[me].snd_cwnd + (double)ca->credit / COUPLED_ONE;

	control->cong_avoid(&subflow[me], 0, 1);
	return subflow[me].snd_cwnd + (double)ca->credit / COUPLED_ONE - before;
}

/* What was earned and made no whole packet yet, in packets. */
double credit(unsigned int me)
{
	return (double)coupled_of(&subflow[me])->credit / COUPLED_ONE;
}
