/* A socket as the coupled congestion controls see one. */
#ifndef SHIM_NET_TCP_H
#define SHIM_NET_TCP_H

#include <linux/module.h>

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCP_ESTABLISHED = 1, TCP_CLOSE_WAIT = 8 };
#define TCPF_ESTABLISHED BIT(TCP_ESTABLISHED)
#define TCPF_CLOSE_WAIT BIT(TCP_CLOSE_WAIT)
#define TCP_CONG_NON_RESTRICTED 1
#define ICSK_CA_PRIV_SIZE (13 * sizeof(u64))

struct sock {
	u8 sk_state, icsk_ca_state;
	bool icsk_ca_initialized;
	struct sock *conn;
	u32 snd_cwnd, snd_ssthresh, snd_cwnd_clamp, srtt_us;
	u64 bytes_acked;
	u64 private_area[13];
};

#define tcp_sock sock
#define inet_connection_sock sock
#define mptcp_subflow_context sock
#define tcp_sk(sk) (sk)
#define inet_csk(sk) (sk)
#define inet_csk_ca(sk) ((void *)(sk)->private_area)
#define mptcp_subflow_ctx(sk) (sk)
#define sk_is_mptcp(sk) ((sk)->conn != NULL)
#define sock_hold(sk) ((void)(sk))
#define sock_put(sk) ((void)(sk))
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#define tcp_snd_cwnd_set(tp, value) ((tp)->snd_cwnd = (value))
#define tcp_is_cwnd_limited(sk) true
#define tcp_in_slow_start(tp) ((tp)->snd_cwnd < (tp)->snd_ssthresh)

struct tcp_congestion_ops {
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 state);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*undo_cwnd)(struct sock *sk);
	const char *name;
	void *owner;
};

u32 tcp_slow_start(struct sock *sk, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);

#endif
