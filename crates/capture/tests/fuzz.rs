//! The fuzz targets on random bytes, and on bytes that are nearly packets.

use polypath_capture::fuzz;
use proptest::prelude::*;

/// STREAM with offset and length, ACK, NEW_CONNECTION_ID, PATH_ACK and others, with small fields.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let field = 0u8..64;
    prop_oneof![
        (field.clone(), field.clone(), 0u8..40).prop_map(|(stream, offset, len)| {
            let mut frame = vec![0x0e, stream, offset, len];
            frame.extend(vec![7; usize::from(len)]);
            frame
        }),
        (field.clone(), field.clone(), field.clone()).prop_map(|(largest, delay, range)| vec![
            0x02,
            largest,
            delay,
            0,
            range.min(largest)
        ]),
        field.prop_map(|data| vec![0x06, data, 2, 1, 2]),
        Just(vec![0x1c, 0, 0, 0]),
        Just(vec![1]),
    ]
}

fn packets() -> impl Strategy<Value = Vec<u8>> {
    let packet = (any::<u8>(), prop::collection::vec(frame(), 1..5));
    prop::collection::vec(packet, 0..40).prop_map(|packets| {
        packets
            .into_iter()
            .flat_map(|(what, frames)| {
                let frames = frames.concat();
                [vec![what, frames.len() as u8], frames].concat()
            })
            .collect()
    })
}

/// Long headers of version 1 with ids of any length, and short ones.
fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let datagram = (
        any::<u8>(),
        any::<u8>(),
        prop::collection::vec(any::<u8>(), 0..60),
        any::<bool>(),
    );
    prop::collection::vec(datagram, 0..40).prop_map(|datagrams| {
        datagrams
            .into_iter()
            .flat_map(|(what, first, rest, long)| {
                let head = if long {
                    vec![first | 0xc0, 0, 0, 0, 1]
                } else {
                    vec![first & 0x7f]
                };
                let bytes = [head, rest].concat();
                [vec![what, bytes.len() as u8], bytes].concat()
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz::quic_datagrams(&bytes);
        fuzz::quic_frames(&bytes);
    }

    #[test]
    fn what_looks_like_datagrams_is_taken(bytes in datagrams()) {
        fuzz::quic_datagrams(&bytes);
    }

    #[test]
    fn a_receiver_has_no_more_than_was_sent(bytes in packets()) {
        fuzz::quic_frames(&bytes);
    }
}
