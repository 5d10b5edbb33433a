#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| polypath_capture::fuzz::quic_frames(bytes));
