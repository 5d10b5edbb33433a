#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| polypath_transport::quic::fuzz::network(bytes));
