//! A topology file is a topology or an error.
#![no_main]

use bellrock_emulator::topology::TopologySpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(topology) = TopologySpec::parse(text) {
        let _ = format!("{topology:?}");
    }
});
