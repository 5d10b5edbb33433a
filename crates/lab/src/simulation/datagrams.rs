//! Datagram applications in the run.

use polypath_net::{Ecn, Packet};
use polypath_transport::Purpose;

use super::{Owner, Simulation, switches};
use crate::flow::{Body, Content, End, ip_header_len};

/// UDP's header and ICMP's echo header alike.
const DATAGRAM_HEADER: u32 = 8;

impl Simulation {
    pub(super) fn start_datagrams(&mut self, application: usize) {
        let settings = &self.plan.applications[application];
        let (client, server) = (settings.client, settings.server);
        let (source, destination) = self.apps[application].addresses;
        let sender = End::Datagrams {
            application: application as u32,
        };
        let stream = u64::MAX - application as u64;
        let there = self.new_flow(client, source, destination, Vec::new(), sender, stream);
        let back = self.new_flow(server, destination, source, Vec::new(), sender, stream);
        self.captures.flows[back as usize].identifier = source.port();
        self.apps[application].flows = Some((there, back));
        let timer = self.apps[application].timer;
        self.own(timer, Owner::Datagrams(application));
        self.tick_datagrams(application);
    }

    pub(super) fn tick_datagrams(&mut self, application: usize) {
        let now = self.network.now();
        let app = &mut self.apps[application];
        let (Some(datagrams), Some((there, _))) = (&mut app.datagrams, app.flows) else {
            return;
        };
        let (due, next) = datagrams.tick(now);
        let (sequence, len, echo) = (
            datagrams.sent.wrapping_sub(1),
            datagrams.payload(),
            datagrams.echo(),
        );
        match next {
            Some(at) => self.network.set_timer(app.timer, at),
            None => self.finish_application(application),
        }
        if due {
            let content = if echo {
                Content::Echo {
                    reply: false,
                    sequence: sequence as u16,
                    sent_at: now,
                    len,
                }
            } else {
                Content::Udp {
                    sequence,
                    sent_at: now,
                    len,
                }
            };
            self.send_datagram(there, content, len);
        }
    }

    pub(super) fn send_datagram(&mut self, flow: u32, content: Content, payload: u32) {
        let protocol = switches::protocol(&self.captures.flows[flow as usize], &content);
        self.refresh_way(flow, protocol);
        let state = &mut self.captures.flows[flow as usize];
        let route = state.route;
        if route.is_none() && !state.here {
            return;
        }
        state.sent = state.sent.wrapping_add(1);
        let body = Body {
            identification: state.sent,
            altered: false,
            purpose: Purpose::Data,
            content,
        };
        let len = ip_header_len(state.source) + DATAGRAM_HEADER + payload;
        self.dispatch(route, len, flow, Ecn::NotEct, body);
    }

    pub(super) fn on_datagram(&mut self, flow: usize, packet: &Packet<Body>) {
        let End::Datagrams { application } = self.captures.flows[flow].sender else {
            return;
        };
        if packet.corrupted {
            return;
        }
        let now = self.network.now();
        let app = &mut self.apps[application as usize];
        let (Some(datagrams), Some((there, back))) = (&mut app.datagrams, app.flows) else {
            return;
        };
        match packet.body.content {
            Content::Echo {
                reply: false,
                sequence,
                sent_at,
                len,
            } => {
                let answer = if flow == there as usize {
                    back
                } else {
                    self.answer_behind_a_middlebox(flow)
                };
                self.send_datagram(
                    answer,
                    Content::Echo {
                        reply: true,
                        sequence,
                        sent_at,
                        len,
                    },
                    len,
                );
            }
            Content::Echo {
                sequence,
                sent_at,
                len,
                ..
            } => {
                let number = number_of(sequence, datagrams.sent);
                datagrams.arrived(number, len, now - sent_at);
            }
            Content::Udp {
                sequence,
                sent_at,
                len,
            } => datagrams.arrived(sequence, len, now - sent_at),
            Content::Tcp(_) | Content::Quic(_) | Content::TooBig { .. } | Content::Frame(_) => {}
        }
    }

    /// The flow of replies to requests that do not come as they left.
    #[cold]
    fn answer_behind_a_middlebox(&mut self, flow: usize) -> u32 {
        let answer = self.answering_flow(flow);
        self.captures.flows[answer as usize].identifier = self.captures.flows[flow].source.port();
        answer
    }
}

/// The last of `sent` requests whose number ends in these 16 bits (RFC 792: the sequence number).
fn number_of(sequence: u16, sent: u64) -> u64 {
    let last = sent.saturating_sub(1);
    last.saturating_sub(u64::from((last as u16).wrapping_sub(sequence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_to_the_last_request_of_its_number() {
        for (sequence, sent, number) in [
            (0, 1, 0),
            (6, 7, 6),
            (3, 65_536, 3),
            (0, 65_537, 65_536),
            (65_535, 65_537, 65_535),
            (9, 70_000, 9 + 65_536),
            (60_000, 70_000, 60_000),
        ] {
            assert_eq!(number_of(sequence, sent), number);
        }
    }
}
