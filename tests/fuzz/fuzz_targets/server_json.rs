#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manager::fuzzing::server_json(data));
