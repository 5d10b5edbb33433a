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
        let last = size_of::<T>().saturating_sub(1);
        // What does not begin with a line may end in one more.
        for offset in (0..last).step_by(LINE).chain([last]) {
            // SAFETY: the instruction is of every x86-64 processor and faults at no address.
            unsafe { _mm_prefetch(start.wrapping_add(offset), _MM_HINT_T0) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}
