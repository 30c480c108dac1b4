//! The long form of the fuzz targets: libFuzzer makes the inputs, led by what they reach.
//! `FUZZ_TARGET` names the target.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = drover_fuzz::TARGETS.iter().find(|(name, _)| *name == wanted);
    let names = drover_fuzz::TARGETS.map(|(name, _)| name).join(", ");
    found.map_or_else(|| panic!("set FUZZ_TARGET to one of: {names}"), |(_, target)| *target)
});

fuzz_target!(|data: &[u8]| TARGET(data));
