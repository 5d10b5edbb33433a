//! Hints to the processor about data that is needed soon. They change no result: they neither read nor write data.

#![deny(clippy::undocumented_unsafe_blocks)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Has the cache lines fetched that `value` lies in.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        for offset in (0..size_of::<T>()).step_by(LINE) {
            // SAFETY: the instruction is of every x86-64 processor and faults at no address.
            unsafe { _mm_prefetch(start.wrapping_add(offset), _MM_HINT_T0) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}
