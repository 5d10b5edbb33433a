//! Upstream Linux's scheduler: bursts of up to 64 kB to the path that drains its queue soonest.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::{Carried, Decision, Scheduler, View, takes_more, usable};
use crate::path::Path;

algorithm! {
    "linux",
    "Bursts of up to 64 kB to the path whose queued bytes drain soonest at its pacing rate; backups only when nothing else is active",
    "Linux net/mptcp/protocol.c, mptcp_subflow_get_send and __subflow_push_pending";
    /// Settings of Linux's scheduler.
    LinuxConfig {
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for LinuxConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Linux {
            help: self.help,
            ..Linux::default()
        })
    }
}

/// `MPTCP_SEND_BURST_SIZE`: 64 kB without the longest TCP and IPv6 headers.
const BURST: u64 = 65_536 - 20 - 40 - 40 - 8;

#[derive(Default)]
struct Linux {
    help: Help,
    /// The path that holds the burst, and what is left of it.
    chosen: usize,
    burst: u64,
    /// Average pacing rate of each path, weighted by what it held and was given (`avg_pacing_rate`); 0 before the first choice.
    pace: Vec<u64>,
}

impl Linux {
    /// The path of each class that would drain its queue soonest, a normal one before a backup.
    fn soonest(&mut self, paths: &[Path]) -> Option<usize> {
        self.pace.resize(paths.len(), 0);
        let mut best = [None::<(u128, usize)>; 2];
        let mut normal = false;
        for (index, path) in paths.iter().enumerate().filter(|(_, path)| usable(path)) {
            normal |= !path.backup;
            let pace = &mut self.pace[index];
            if *pace == 0 {
                *pace = path.pacing_rate;
            }
            if *pace == 0 {
                continue;
            }
            let linger = (u128::from(path.memory) << 32) / u128::from(*pace);
            let best = &mut best[usize::from(path.backup)];
            if best.is_none_or(|(least, _)| linger < least) {
                *best = Some((linger, index));
            }
        }
        best[usize::from(!normal)].map(|(_, index)| index)
    }

    /// Gives the chosen path a new burst.
    fn grant(&mut self, index: usize, path: &Path, window: u64) {
        self.chosen = index;
        self.burst = BURST.min(window);
        if self.burst > 0 {
            let (held, burst) = (u128::from(path.memory), u128::from(self.burst));
            let sum = u128::from(self.pace[index]) * held + u128::from(path.pacing_rate) * burst;
            self.pace[index] = (sum / (held + burst)) as u64;
        }
    }
}

impl Scheduler for Linux {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn fills_queues(&self) -> bool {
        true
    }

    fn begin(&mut self) {
        self.burst = 0;
    }

    fn select(&mut self, view: &View) -> Decision {
        if view.next.is_none() {
            return Decision::Wait;
        }
        let goes_on = self.burst > 0
            && view
                .paths
                .get(self.chosen)
                .is_some_and(|path| usable(path) && takes_more(path));
        if !goes_on {
            let chosen = self.soonest(view.paths);
            let Some(index) = chosen.filter(|&index| takes_more(&view.paths[index])) else {
                return Decision::Wait;
            };
            self.grant(index, &view.paths[index], view.window);
        }
        Decision::Send(self.chosen)
    }

    fn carried(&mut self, segment: Carried) {
        self.burst = self.burst.saturating_sub(segment.bytes.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Next, PacketKind, PathSet};
    use super::*;

    const MSS: u32 = 1420;

    fn path(pacing_rate: u64, memory: u64) -> Path {
        Path {
            established: true,
            pacing_rate,
            memory,
            buffer: 500_000,
            ..Path::new(MSS, 10)
        }
    }

    fn view(paths: &[Path], offset: u64) -> View<'_> {
        let next = Next {
            offset,
            len: u64::from(MSS),
            carried: PathSet::default(),
            reinjection: false,
        };
        View {
            now: 0,
            paths,
            kind: PacketKind::Data,
            next: Some(next),
            head: None,
            una: 0,
            sent: offset,
            unsent: 1_000_000,
            window: 1_000_000,
        }
    }

    /// Decisions for a writer that does not pause, each segment charged to the path that it went to.
    fn decisions(scheduler: &mut Linux, paths: &mut [Path], segments: usize) -> Vec<usize> {
        let mut offset = 0;
        let mut found = Vec::new();
        for _ in 0..segments {
            let Decision::Send(index) = scheduler.select(&view(paths, offset)) else {
                break;
            };
            paths[index].memory += u64::from(MSS);
            scheduler.carried(Carried {
                path: index,
                offset,
                bytes: MSS,
                new: true,
            });
            offset += u64::from(MSS);
            found.push(index);
        }
        found
    }

    #[test]
    fn the_path_that_drains_soonest_takes_a_burst() {
        let mut paths = [path(1_000_000, 60_000), path(2_000_000, 100_000)];
        let chosen = decisions(&mut Linux::default(), &mut paths, 60);
        assert!(chosen[..46].iter().all(|&index| index == 1), "{chosen:?}");
        // 100 kB and a burst at 2 MB/s last longer than 60 kB at 1 MB/s.
        assert!(chosen[47..].iter().all(|&index| index == 0), "{chosen:?}");
    }

    #[test]
    fn a_full_queue_waits_even_if_another_path_has_room() {
        let mut paths = [path(1_000_000, 100_000), path(10_000_000, 500_000)];
        assert_eq!(
            Linux::default().select(&view(&paths, 0)),
            Decision::Wait,
            "the soonest to drain is full"
        );
        paths[1].memory = 499_999;
        assert_eq!(Linux::default().select(&view(&paths, 0)), Decision::Send(1));
    }

    #[test]
    fn backups_serve_only_when_no_other_path_is_active() {
        let mut paths = [path(1_000_000, 400_000), path(10_000_000, 0)];
        paths[1].backup = true;
        assert_eq!(Linux::default().select(&view(&paths, 0)), Decision::Send(0));
        paths[0].potentially_failed = true;
        assert_eq!(Linux::default().select(&view(&paths, 0)), Decision::Send(1));
    }

    #[test]
    fn the_window_ends_a_burst() {
        let paths = [path(1_000_000, 0), path(1_000_000, 10)];
        let mut scheduler = Linux::default();
        let mut seen = view(&paths, 0);
        seen.window = 1_000;
        assert_eq!(scheduler.select(&seen), Decision::Send(0));
        assert_eq!(scheduler.burst, 1_000);
    }
}
