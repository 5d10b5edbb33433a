//! Datagram applications in the run.

use polypath_net::{Ecn, Packet};
use polypath_transport::Purpose;

use super::Apps;
use crate::flow::{Body, Content, DATAGRAM_HEADER, End, ip_header_len, protocol};
use crate::simulation::world::Owner;
use crate::simulation::world::World;

impl Apps {
    /// Begins an application between two nodes.
    pub fn start_datagrams(
        &mut self,
        world: &mut World,
        application: usize,
        (client, server): (usize, usize),
    ) {
        let (source, destination) = self.apps[application].addresses;
        let sender = End::Datagrams {
            application: application as u32,
        };
        let stream = u64::MAX - application as u64;
        let there = world.new_flow(client, source, destination, Vec::new(), sender, stream);
        let back = world.new_flow(server, destination, source, Vec::new(), sender, stream);
        world.net.flow_mut(back).identifier = source.port();
        self.apps[application].flows = Some((there, back));
        let timer = self.apps[application].timer;
        world.own(timer, Owner::Datagrams(application));
        self.tick_datagrams(world, application);
    }

    pub fn tick_datagrams(&mut self, world: &mut World, application: usize) {
        let now = world.net.now();
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
            Some(at) => world.net.set_timer(app.timer, at),
            None => self.finish(application),
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
            self.send_datagram(world, there, content, len);
        }
    }

    pub fn send_datagram(&mut self, world: &mut World, flow: u32, content: Content, payload: u32) {
        let protocol = protocol(world.net.flow(flow), &content);
        world.refresh_way(flow, protocol);
        let state = world.net.flow_mut(flow);
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
        world.dispatch(route, len, flow, Ecn::NotEct, body);
    }

    pub fn on_datagram(&mut self, world: &mut World, flow: u32, packet: &Packet<Body>) {
        let End::Datagrams { application } = world.net.flow(flow).sender else {
            return;
        };
        if packet.corrupted {
            return;
        }
        let now = world.net.now();
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
                let answer = if flow == there {
                    back
                } else {
                    self.answer_behind_a_middlebox(world, flow)
                };
                self.send_datagram(
                    world,
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
    fn answer_behind_a_middlebox(&mut self, world: &mut World, flow: u32) -> u32 {
        let answer = world.answering_flow(flow);
        world.net.flow_mut(answer).identifier = world.net.flow(flow).source.port();
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
