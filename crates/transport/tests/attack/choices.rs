//! The source of a case's decisions: a seed, or the bytes of a fuzzer.

use std::cell::RefCell;
use std::rc::Rc;
use std::vec;

use rand::RngCore;
use rand_pcg::Pcg64Mcg;

/// A source of decisions. Its clones take from the same one, so that decisions stand in the order of time.
#[derive(Clone)]
pub struct Choices(Rc<RefCell<Source>>);

struct Source {
    bytes: vec::IntoIter<u8>,
    /// What decides when the bytes are used up.
    then: Pcg64Mcg,
}

impl Choices {
    pub fn of_seed(seed: u64) -> Self {
        Self::new(Vec::new(), u128::from(seed) << 1 | 1)
    }

    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::new(bytes.to_vec(), 1)
    }

    fn new(bytes: Vec<u8>, then: u128) -> Self {
        Self(Rc::new(RefCell::new(Source {
            bytes: bytes.into_iter(),
            then: Pcg64Mcg::new(then),
        })))
    }
}

impl RngCore for Choices {
    fn next_u32(&mut self) -> u32 {
        let source = &mut *self.0.borrow_mut();
        match source.bytes.as_slice().first_chunk().copied() {
            Some(chunk) => {
                source.bytes.nth(chunk.len() - 1);
                u32::from_be_bytes(chunk)
            }
            None => source.then.next_u32(),
        }
    }

    fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) << 32 | u64::from(self.next_u32())
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(4) {
            chunk.copy_from_slice(&self.next_u32().to_be_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, RngCore};

    use super::Choices;
    use crate::{mptcp, tcp};

    #[test]
    fn bytes_decide_and_then_a_seed() {
        let mut choices = Choices::of_bytes(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut clone = choices.clone();
        assert_eq!(choices.random::<u32>(), 0x0102_0304);
        assert_eq!(clone.random::<u32>(), 0x0506_0708);
        assert_eq!(choices.random::<u64>(), Choices::of_seed(0).random::<u64>());
    }

    #[test]
    fn seeds_decide_differently() {
        let drawn = |seed| Choices::of_seed(seed).random::<u64>();
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn bytes_attack_as_seeds_do() {
        for case in tcp::CASES.iter().chain(mptcp::CASES) {
            for seed in 0..20 {
                let mut bytes = vec![0; 2_000];
                Choices::of_seed(seed).fill_bytes(&mut bytes);
                case(&mut Choices::of_bytes(&bytes));
            }
        }
    }
}
