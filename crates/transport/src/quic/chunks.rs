//! What was sent of streams and is not known to have arrived.

use std::collections::{BTreeMap, VecDeque};

use crate::scheduler::PathSet;

/// A stretch of a stream that was sent in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Where it lies among everything that the connection's streams ever sent. The end of a stream takes a place of its own.
    pub position: u64,
    pub stream: u64,
    pub offset: u64,
    pub len: u32,
    pub fin: bool,
    pub carried: PathSet,
    /// The path that carried it last.
    pub holder: u16,
    pub acked: bool,
    /// It waits to be sent again.
    pub again: bool,
}

impl Chunk {
    /// Places that it takes.
    pub fn places(&self) -> u64 {
        u64::from(self.len) + u64::from(self.fin)
    }

    pub fn end(&self) -> u64 {
        self.position + self.places()
    }

    fn holds(&self, position: u64) -> bool {
        self.position <= position && position < self.end()
    }
}

/// Chunks without a gap between them; the first is unacknowledged.
#[derive(Debug)]
pub(super) struct Chunks {
    /// As they were first sent; of one that was cut, the first piece.
    whole: VecDeque<Chunk>,
    /// The other pieces, by position: a cut among a hundred thousand chunks costs no more than one among ten.
    cut: BTreeMap<u64, Chunk>,
    /// Where the first of them begins, and one beyond where the last ended: most questions are about what lies elsewhere.
    first_cut: u64,
    beyond_cut: u64,
}

impl Default for Chunks {
    fn default() -> Self {
        Self {
            whole: VecDeque::new(),
            cut: BTreeMap::new(),
            first_cut: u64::MAX,
            beyond_cut: 0,
        }
    }
}

impl Chunks {
    /// A chunk that follows all others.
    pub fn push(&mut self, chunk: Chunk) {
        self.whole.push_back(chunk);
    }

    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.cut.is_empty()
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&Chunk> {
        match self.whole.front() {
            Some(whole) if whole.position < self.first_cut => Some(whole),
            _ => self.first_of_cut(),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_of_cut(&self) -> Option<&Chunk> {
        self.cut.first_key_value().map(|(_, chunk)| chunk)
    }

    /// Drops those that are acknowledged, up to the first that is not.
    #[inline(always)]
    pub fn drop_acked(&mut self) {
        while let Some(front) = self.whole.front()
            && front.position < self.first_cut
        {
            if !front.acked {
                return;
            }
            self.whole.pop_front();
        }
        if !self.cut.is_empty() {
            self.drop_acked_cut();
        }
    }

    /// As [`Chunks::drop_acked`], where a piece is the first.
    #[cold]
    #[inline(never)]
    fn drop_acked_cut(&mut self) {
        while self.front().is_some_and(|chunk| chunk.acked) {
            if (self.whole.front()).is_some_and(|whole| whole.position < self.first_cut) {
                self.whole.pop_front();
                continue;
            }
            self.cut.pop_first();
            let first = self.cut.first_key_value();
            self.first_cut = first.map_or(u64::MAX, |(&position, _)| position);
        }
        if self.cut.is_empty() {
            self.beyond_cut = 0;
        }
    }

    /// The chunk that holds a position.
    pub fn find(&self, position: u64) -> Option<&Chunk> {
        let after = self.whole.partition_point(|it| it.position <= position);
        let whole = after.checked_sub(1).map(|at| &self.whole[at]);
        whole.filter(|chunk| chunk.holds(position)).or_else(|| {
            let (_, cut) = self.cut.range(..=position).next_back()?;
            cut.holds(position).then_some(cut)
        })
    }

    pub fn find_mut(&mut self, position: u64) -> Option<&mut Chunk> {
        let after = self.whole.partition_point(|it| it.position <= position);
        let whole = after.checked_sub(1).map(|at| &mut self.whole[at]);
        whole.filter(|chunk| chunk.holds(position)).or_else(|| {
            let (_, cut) = self.cut.range_mut(..=position).next_back()?;
            cut.holds(position).then_some(cut)
        })
    }

    /// Cuts the chunk that holds a position in two, the first of `len` bytes. Returns the second.
    pub fn cut(&mut self, position: u64, len: u32) -> Option<Chunk> {
        let first = self.find_mut(position)?;
        let rest = Chunk {
            position: first.position + u64::from(len),
            offset: first.offset + u64::from(len),
            len: first.len - len,
            ..*first
        };
        first.len = len;
        first.fin = false;
        self.first_cut = self.first_cut.min(rest.position);
        self.beyond_cut = self.beyond_cut.max(rest.end());
        self.cut.insert(rest.position, rest);
        Some(rest)
    }

    /// Calls `each` for the chunks between two positions that are not acknowledged, pieces that were cut off last.
    #[inline(always)]
    pub fn visit(&mut self, position: u64, end: u64, mut each: impl FnMut(&mut Chunk)) {
        let mut at = self.first_beyond(position);
        while let Some(chunk) = self.whole.get_mut(at).filter(|it| it.position < end) {
            if !chunk.acked {
                each(chunk);
            }
            at += 1;
        }
        if position < self.beyond_cut && end > self.first_cut {
            self.visit_cut(position, end, &mut each);
        }
    }

    #[cold]
    #[inline(never)]
    fn visit_cut(&mut self, position: u64, end: u64, each: &mut impl FnMut(&mut Chunk)) {
        let before = self.cut.range(..position).next_back();
        let first = before.filter(|(_, chunk)| chunk.holds(position));
        let first = first.map_or(position, |(&first, _)| first);
        for chunk in self.cut.range_mut(first..end).map(|(_, chunk)| chunk) {
            if !chunk.acked {
                each(chunk);
            }
        }
    }

    /// All of them, in no order that means anything.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Chunk> {
        self.whole.iter_mut().chain(self.cut.values_mut())
    }

    /// Of those as they were first sent, the first that ends beyond a position.
    #[inline(always)]
    fn first_beyond(&self, position: u64) -> usize {
        let Some(front) = self.whole.front() else {
            return 0;
        };
        // What is acknowledged is commonly the oldest.
        if front.end() > position {
            return 0;
        }
        // Most are as long as a packet takes, or some bytes less.
        let guess = (position - front.position) / front.places().max(1);
        let near = usize::try_from(guess).unwrap_or(usize::MAX);
        for at in near.saturating_sub(1)..=near.saturating_add(1) {
            if self.whole.get(at).is_some_and(|it| it.holds(position)) {
                return at;
            }
        }
        self.whole.partition_point(|chunk| chunk.end() <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(lengths: &[u32]) -> Chunks {
        let mut chunks = Chunks::default();
        let mut position = 0;
        for &len in lengths {
            chunks.push(Chunk {
                position,
                stream: 0,
                offset: position,
                len,
                fin: false,
                carried: PathSet::default(),
                holder: 0,
                acked: false,
                again: false,
            });
            position += u64::from(len);
        }
        chunks
    }

    fn acknowledge(chunks: &mut Chunks, position: u64, end: u64) -> u64 {
        let mut bytes = 0;
        chunks.visit(position, end, |chunk| {
            chunk.acked = true;
            bytes += chunk.places();
        });
        chunks.drop_acked();
        bytes
    }

    #[test]
    fn pieces_are_found_where_the_whole_was() {
        let mut chunks = chunks(&[100, 100, 100]);
        chunks.cut(100, 30).expect("the second chunk");
        chunks.cut(150, 50).expect("its second piece");
        let found = |position| chunks.find(position).map(|it| (it.position, it.len));
        assert_eq!(found(99), Some((0, 100)));
        assert_eq!(found(129), Some((100, 30)));
        assert_eq!(found(130), Some((130, 50)));
        assert_eq!(found(199), Some((180, 20)));
        assert_eq!(found(200), Some((200, 100)));
        assert_eq!(found(300), None);
    }

    #[test]
    fn each_piece_is_visited_once() {
        let mut chunks = chunks(&[100, 100, 100]);
        chunks.cut(100, 30);
        chunks.cut(130, 50);
        assert_eq!(acknowledge(&mut chunks, 130, 180), 50);
        assert_eq!(acknowledge(&mut chunks, 100, 200), 50);
        assert_eq!(chunks.front().map(|it| it.position), Some(0));
        assert_eq!(acknowledge(&mut chunks, 0, 100), 100);
        assert_eq!(chunks.front().map(|it| it.position), Some(200));
        assert_eq!(acknowledge(&mut chunks, 200, 300), 100);
        assert!(chunks.is_empty());
    }
}
