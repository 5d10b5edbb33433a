//! How far the clocks of files are apart, by handshakes that several of them have.

use crate::survey::{Survey, Surveyed};

/// Times at which SYN and SYN/ACK passed the two places.
struct Handshake {
    at_client: (i64, i64),
    at_server: (i64, i64),
}

impl Handshake {
    /// Nanoseconds that the server's clock is ahead, if by the clocks as they are something arrives before it was sent.
    fn contradiction(&self) -> Option<i64> {
        let there = self.at_server.0.saturating_sub(self.at_client.0);
        let back = self.at_client.1.saturating_sub(self.at_server.1);
        (there < 0 || back < 0).then_some(there.saturating_sub(back) / 2)
    }

    fn round_trip(&self) -> i64 {
        let at_client = self.at_client.1.saturating_sub(self.at_client.0);
        at_client.saturating_sub(self.at_server.1.saturating_sub(self.at_server.0))
    }
}

/// Nanoseconds that each file's clock is ahead of the first one's; absent where no handshake compares them. Of several
/// handshakes the one with the shortest round trip counts, as the way there and back is taken for equally long.
pub fn ahead(survey: &Survey, files: usize) -> Vec<Option<i64>> {
    let mut known: Vec<Option<i64>> = vec![None; files];
    if let Some(first) = known.first_mut() {
        *first = Some(0);
    }
    for _ in 0..files {
        for file in 0..files {
            if known[file].is_some() {
                continue;
            }
            let best = survey
                .found
                .iter()
                .flat_map(|flow| between(flow, file as u16))
                .filter_map(|(other, handshake)| {
                    let of_other = known[usize::from(other)]?;
                    let ahead = handshake.0.contradiction().unwrap_or(0);
                    let ahead = if handshake.1 { ahead } else { -ahead };
                    Some((handshake.0.round_trip(), of_other.saturating_add(ahead)))
                })
                .min();
            known[file] = best.map(|(_, ahead)| ahead);
        }
    }
    known
}

/// Whether each file has to do with another place of whose clock it knows nothing, in a survey that is settled.
pub fn unchecked(survey: &Survey, ahead: &[Option<i64>]) -> Vec<bool> {
    let mut found = vec![false; ahead.len()];
    for flow in survey.found.iter().filter(|flow| flow.taps.len() > 1) {
        for seen in &flow.taps {
            let files = || seen.taps().map(|tap| usize::from(tap.file));
            if files().all(|file| ahead[file].is_none()) {
                files().for_each(|file| found[file] = true);
            }
        }
    }
    found
}

/// The handshakes that a file shares with another one, each with whether the file is the one nearer to the server.
fn between(flow: &Surveyed, file: u16) -> impl Iterator<Item = (u16, (Handshake, bool))> {
    let own = flow.taps.iter().filter(move |seen| seen.tap.file == file);
    own.flat_map(move |seen| {
        flow.taps
            .iter()
            .filter(move |other| other.tap.file != file)
            .filter_map(move |other| {
                let opener = flow.opener?;
                let times = (seen.handshake(opener)?, other.handshake(opener)?);
                // The longer the answer takes, the nearer is the opener.
                let nearer = |at: (i64, i64)| at.1.saturating_sub(at.0);
                let at_server = nearer(times.0) < nearer(times.1);
                let handshake = if at_server {
                    Handshake {
                        at_client: times.1,
                        at_server: times.0,
                    }
                } else {
                    Handshake {
                        at_client: times.0,
                        at_server: times.1,
                    }
                };
                Some((other.tap.file, (handshake, at_server)))
            })
    })
}
