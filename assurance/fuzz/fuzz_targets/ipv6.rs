#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| polypath_wire::fuzz::ipv6(bytes));
