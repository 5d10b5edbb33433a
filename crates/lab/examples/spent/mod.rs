//! What a process has spent.

/// Its CPU time, and the system's for it.
pub fn cpu_seconds() -> f64 {
    // SAFETY: zeros are a valid `rusage`, which getrusage fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
        .sum()
}
