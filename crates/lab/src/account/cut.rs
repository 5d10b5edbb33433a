//! Which links bound what a connection could carry.

use polypath_net::ChannelId;

/// The links whose rates together bound what goes over these paths: each path's narrowest, or one that several of them share and that is narrower
/// than those together. A path without a rate has none.
pub(crate) fn narrowest(
    paths: &[Vec<ChannelId>],
    rate: impl Fn(ChannelId) -> Option<u64>,
) -> Vec<ChannelId> {
    let paths: Vec<Vec<(ChannelId, u64)>> = paths
        .iter()
        .map(|path| {
            let rated = path.iter().map(|&channel| (channel, rate(channel)));
            rated
                .filter_map(|(channel, rate)| Some((channel, rate?)))
                .collect()
        })
        .filter(|path: &Vec<_>| !path.is_empty())
        .collect();
    let least = |path: &Vec<(ChannelId, u64)>| path.iter().copied().min_by_key(|it| it.1);
    let mut chosen: Vec<(ChannelId, u64)> = paths.iter().filter_map(least).collect();
    while let Some((shared, rate)) = narrower(&paths, &chosen) {
        for (path, chosen) in paths.iter().zip(&mut chosen) {
            if path.iter().any(|it| it.0 == shared) {
                *chosen = (shared, rate);
            }
        }
    }
    let mut found: Vec<ChannelId> = Vec::new();
    for (channel, _) in chosen {
        if !found.contains(&channel) {
            found.push(channel);
        }
    }
    found
}

/// A link that is narrower than all those together that it can stand for.
fn narrower(
    paths: &[Vec<(ChannelId, u64)>],
    chosen: &[(ChannelId, u64)],
) -> Option<(ChannelId, u64)> {
    let candidates = paths.iter().flatten().copied();
    candidates.into_iter().find(|&(candidate, rate)| {
        let over = |path: &[(ChannelId, u64)]| path.iter().any(|it| it.0 == candidate);
        let mut replaced: Vec<(ChannelId, u64)> = Vec::new();
        for (path, &own) in paths.iter().zip(chosen) {
            let others = paths.iter().zip(chosen).filter(|(_, it)| **it == own);
            let whole = others.into_iter().all(|(path, _)| over(path));
            if over(path) && whole && own.0 != candidate && !replaced.contains(&own) {
                replaced.push(own);
            }
        }
        let together: u128 = replaced.iter().map(|it| u128::from(it.1)).sum();
        let counted = chosen.iter().any(|it| it.0 == candidate);
        let more = if counted { 0 } else { u128::from(rate) };
        more < together
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links found over paths of links that are named by number, with these rates.
    fn found(paths: &[&[u32]], rates: &[Option<u64>]) -> Vec<u32> {
        let paths: Vec<Vec<ChannelId>> = paths
            .iter()
            .map(|path| path.iter().map(|&it| ChannelId(it)).collect())
            .collect();
        let found = narrowest(&paths, |channel| rates[channel.0 as usize]);
        found.into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn a_path_has_its_narrowest_link_and_of_equals_the_first() {
        assert_eq!(found(&[&[0, 1, 2]], &[Some(5), Some(3), Some(3)]), [1]);
        assert_eq!(found(&[&[0, 1]], &[None, Some(9)]), [1]);
        assert!(found(&[&[0]], &[None]).is_empty());
    }

    #[test]
    fn a_shared_link_counts_where_it_is_narrower_than_the_paths_together() {
        let paths: [&[u32]; 2] = [&[0, 2], &[1, 2]];
        assert_eq!(found(&paths, &[Some(10), Some(10), Some(15)]), [2]);
        assert_eq!(found(&paths, &[Some(10), Some(10), Some(20)]), [0, 1]);
        assert_eq!(found(&paths, &[Some(30), Some(20), Some(25)]), [2]);
    }

    #[test]
    fn a_full_mesh_is_bounded_by_the_narrower_side() {
        let paths: [&[u32]; 4] = [&[0, 2], &[0, 3], &[1, 2], &[1, 3]];
        let rates = |a, b| [Some(a), Some(a), Some(b), Some(b)];
        assert_eq!(found(&paths, &rates(20, 20)), [0, 1]);
        assert_eq!(found(&paths, &rates(20, 10)), [2, 3]);
    }
}
