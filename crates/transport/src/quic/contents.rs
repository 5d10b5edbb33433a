//! The contents of a packet, kept until it is acknowledged or lost.

use polypath_wire::quic::Frame;

/// A thing in a packet.
#[derive(Debug)]
pub(super) enum Carried {
    /// Stream data between two positions.
    Data {
        position: u64,
        end: u64,
    },
    Crypto {
        offset: u64,
        end: u64,
    },
    /// An acknowledgement on behalf of a space, up to its largest number; of the application level that of a path.
    Ack {
        path: u32,
        largest: u64,
    },
    Control(Frame),
    Probe,
    /// It went to other addresses than those of the path.
    OffPath,
}

/// The common packet has a stretch of data, an acknowledgement, or both: these take no memory of their own.
#[derive(Debug)]
pub(super) struct Contents {
    /// Positions of the first stretch of data; the same where there is none.
    data: (u64, u64),
    /// Path and largest number of the first acknowledgement; [`NO_PATH`] where there is none.
    ack: (u32, u64),
    /// Whatever else there is, in order.
    #[allow(clippy::box_collection, reason = "it is seldom there, and moved often")]
    rest: Option<Box<Vec<Carried>>>,
}

const NO_PATH: u32 = u32::MAX;

impl Default for Contents {
    fn default() -> Self {
        Self {
            data: (0, 0),
            ack: (NO_PATH, 0),
            rest: None,
        }
    }
}

impl Contents {
    pub fn add_data(&mut self, position: u64, end: u64) {
        if self.data.0 == self.data.1 {
            self.data = (position, end);
        } else {
            self.add(Carried::Data { position, end });
        }
    }

    pub fn add_ack(&mut self, path: u32, largest: u64) {
        if self.ack.0 == NO_PATH {
            self.ack = (path, largest);
        } else {
            self.add(Carried::Ack { path, largest });
        }
    }

    /// Anything else.
    pub fn add(&mut self, carried: Carried) {
        self.rest.get_or_insert_default().push(carried);
    }

    /// The stretches of data, by position and end.
    pub fn data(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.first_data();
        let further = self.others().iter().filter_map(|carried| match carried {
            Carried::Data { position, end } => Some((*position, *end)),
            _ => None,
        });
        first.into_iter().chain(further)
    }

    /// Bytes of them, ends of streams counted as one each.
    pub fn data_bytes(&self) -> u64 {
        if self.rest.is_none() {
            return self.data.1 - self.data.0;
        }
        self.data().map(|(position, end)| end - position).sum()
    }

    /// The control frames.
    pub fn control(&self) -> impl Iterator<Item = &Frame> {
        self.others().iter().filter_map(|carried| match carried {
            Carried::Control(frame) => Some(frame),
            _ => None,
        })
    }

    /// The first stretch of data.
    pub fn first_data(&self) -> Option<(u64, u64)> {
        Some(self.data).filter(|data| data.0 < data.1)
    }

    /// Path and largest number of the first acknowledgement.
    pub fn first_ack(&self) -> Option<(u32, u64)> {
        Some(self.ack).filter(|ack| ack.0 != NO_PATH)
    }

    /// Takes out everything else.
    #[inline]
    #[allow(clippy::box_collection, reason = "as it lies here")]
    pub fn take_others(&mut self) -> Option<Box<Vec<Carried>>> {
        self.rest.take()
    }

    fn others(&self) -> &[Carried] {
        self.rest.as_deref().map_or(&[], Vec::as_slice)
    }

    pub fn is_probe(&self) -> bool {
        let mut others = self.others().iter();
        others.any(|carried| matches!(carried, Carried::Probe))
    }

    pub fn off_path(&self) -> bool {
        let mut others = self.others().iter();
        others.any(|carried| matches!(carried, Carried::OffPath))
    }

    /// Hands out everything.
    pub fn for_each(self, mut each: impl FnMut(Carried)) {
        if let Some((position, end)) = self.first_data() {
            each(Carried::Data { position, end });
        }
        if let Some((path, largest)) = self.first_ack() {
            each(Carried::Ack { path, largest });
        }
        if let Some(rest) = self.rest {
            rest.into_iter().for_each(each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_added_is_handed_out() {
        let mut contents = Contents::default();
        contents.add_ack(1, 9);
        for position in [10, 40] {
            contents.add_data(position, position + 5);
        }
        contents.add_ack(0, 3);
        assert_eq!(contents.data().collect::<Vec<_>>(), [(10, 15), (40, 45)]);
        assert!(!contents.is_probe() && !contents.off_path());
        contents.add(Carried::Probe);
        contents.add(Carried::OffPath);
        assert!(contents.is_probe() && contents.off_path());
        let mut acks = Vec::new();
        let mut count = 0;
        contents.for_each(|carried| {
            count += 1;
            if let Carried::Ack { path, largest } = carried {
                acks.push((path, largest));
            }
        });
        assert_eq!((count, acks), (6, vec![(1, 9), (0, 3)]));
    }
}
