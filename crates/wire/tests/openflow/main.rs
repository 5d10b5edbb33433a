//! OpenFlow: emitted messages parse to the same again, and faulty ones are refused as the specification says.

mod faults;
mod strategies;

use polypath_wire::{fuzz, openflow};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1305), ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn messages_survive(xid: u32, message in strategies::message()) {
        let mut bytes = vec![7; 3];
        openflow::emit(xid, &message, &mut bytes).unwrap();
        let message_bytes = &bytes[3..];
        prop_assert_eq!(openflow::split(message_bytes), Ok(Some(message_bytes.len())));
        prop_assert_eq!(openflow::parse(message_bytes), Ok((xid, message)));
    }

    #[test]
    fn damage_is_no_panic(message in strategies::message(), flips in vec(any::<Index>(), 0..6), cut in any::<Index>()) {
        let mut bytes = Vec::new();
        openflow::emit(1, &message, &mut bytes).unwrap();
        for flip in flips {
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        fuzz::openflow(&bytes);
        bytes.truncate(cut.index(bytes.len() + 1));
        fuzz::openflow(&bytes);
        // With a length that fits, so that what is inside is looked at.
        if bytes.len() >= openflow::HEADER_LEN {
            let len = (bytes.len() as u16).to_be_bytes();
            bytes[2..4].copy_from_slice(&len);
            bytes[0] = openflow::VERSION;
            fuzz::openflow(&bytes);
        }
    }
}

#[test]
fn too_long_a_message_is_refused() {
    let mut bytes = vec![1, 2];
    let message = openflow::Message::EchoRequest(vec![0; 65_535 - 7]);
    assert!(openflow::emit(1, &message, &mut bytes).is_err());
    assert_eq!(bytes, [1, 2]);
    let message = openflow::Message::EchoRequest(vec![0; 65_535 - 8]);
    openflow::emit(1, &message, &mut bytes).unwrap();
    assert_eq!(openflow::split(&bytes[2..]), Ok(Some(65_535)));
}
