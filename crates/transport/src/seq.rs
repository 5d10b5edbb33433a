//! Sequence numbers: 64 bits inside, 32 on the wire.
//!
//! Inside an endpoint a sequence number counts from the initial one and never wraps. The wire carries the low 32 bits
//! of its sum with the initial sequence number (RFC 9293 section 3.4).

/// The wire form of `offset`.
pub fn wrap(initial: u32, offset: u64) -> u32 {
    initial.wrapping_add(offset as u32)
}

/// The number nearest to `near` whose wire form is `wire`; 0 where that would lie before the initial one.
pub fn unwrap(initial: u32, wire: u32, near: u64) -> u64 {
    let low = wire.wrapping_sub(initial);
    let distance = low.wrapping_sub(near as u32) as i32;
    near.checked_add_signed(i64::from(distance)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unwrap_inverts_wrap(initial: u32, near in 0u64..1 << 48, distance in -(1i64 << 31) + 1..1i64 << 31) {
            let offset = near.saturating_add_signed(distance);
            prop_assume!(near.checked_add_signed(distance).is_some());
            prop_assert_eq!(unwrap(initial, wrap(initial, offset), near), offset);
        }
    }
}
