//! A path among those of its connection.

use std::ops::{Deref, DerefMut};

use super::Path;

/// A path, and the others that coupled congestion control sees with it.
pub struct Member<'a> {
    pub paths: &'a mut [Path],
    pub index: usize,
}

impl<'a> Member<'a> {
    #[inline(always)]
    pub fn new(paths: &'a mut [Path], index: usize) -> Self {
        Self { paths, index }
    }
}

impl Deref for Member<'_> {
    type Target = Path;

    #[inline(always)]
    fn deref(&self) -> &Path {
        &self.paths[self.index]
    }
}

impl DerefMut for Member<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Path {
        &mut self.paths[self.index]
    }
}
