//! Finding segments in flight by their sequence numbers.

use std::collections::VecDeque;

use super::sender::Sent;
use crate::search::partition_point_near;

/// Of fewer segments, caches hold all.
const LONG: usize = 512;

/// Index of the first segment that ends beyond `seq`, or their number. Most are of one length: it is looked for where it would
/// be if all were.
pub(super) fn first_beyond(sent: &VecDeque<Sent>, seq: u64) -> usize {
    let (Some(front), Some(back)) = (sent.front(), sent.back()) else {
        return 0;
    };
    if front.end() > seq {
        return 0;
    }
    if sent.len() < LONG {
        return sent.partition_point(|it| it.end() <= seq);
    }
    let all = back.end() - front.seq;
    let guess = (seq - front.seq) * sent.len() as u64 / all;
    partition_point_near(sent, guess as usize, |it| it.end() <= seq)
}

/// Index of the first segment that begins at `seq` or beyond, or their number.
pub(super) fn first_from(sent: &VecDeque<Sent>, seq: u64) -> usize {
    let at = first_beyond(sent, seq);
    at + usize::from(sent.get(at).is_some_and(|found| found.seq < seq))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_where_they_begin_and_end() {
        let mut sent = VecDeque::new();
        let mut next = 0;
        for len in [1400, 1400, 20, 1400].repeat(200) {
            let mut whole = Sent::syn(0);
            (whole.seq, whole.len) = (next, len);
            next = whole.end();
            sent.push_back(whole);
        }
        for seq in (0..900_000).step_by(700).chain(0..4300) {
            let beyond = sent.partition_point(|it| it.end() <= seq);
            let from = sent.partition_point(|it| it.seq < seq);
            assert_eq!(
                (first_beyond(&sent, seq), first_from(&sent, seq)),
                (beyond, from)
            );
        }
    }
}
