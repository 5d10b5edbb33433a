//! At which instants a connection of a capture is sampled.

/// The instants since a connection's last packet: the first of them, and the last before `now`; nothing changed between.
/// `sampled` is when it was sampled last, from its first packet on.
pub fn since(
    sampled: &mut Option<i64>,
    now: i64,
    interval: i64,
) -> impl Iterator<Item = i64> + use<> {
    let until = now / interval * interval;
    let last = *sampled.get_or_insert(until);
    let first = last.saturating_add(interval);
    if last < until {
        *sampled = Some(until);
    }
    let first = (first < until).then_some(first);
    let until = (last < until).then_some(until);
    first.into_iter().chain(until)
}

#[cfg(test)]
mod tests {
    use super::since;

    #[test]
    fn the_first_and_the_last_instant_are_sampled() {
        let mut sampled = None;
        let mut at = |now| since(&mut sampled, now, 100).collect::<Vec<_>>();
        assert!(at(30).is_empty());
        assert!(at(99).is_empty());
        assert_eq!(at(100), [100]);
        assert_eq!(at(250), [200]);
        assert_eq!(at(999), [300, 900]);
        assert!(at(950).is_empty());
    }
}
