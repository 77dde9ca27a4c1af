//! A file that declares a network is an intent or a list of problems.
#![no_main]

use std::io;
use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let files = |path: &Path| match path.to_str() {
        Some("faucet.yaml") => Ok(text.to_owned()),
        Some("other.yaml") => Ok("vlans: {office: {vid: 100}}".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    match bellrock_fabric::read(Path::new("faucet.yaml"), &files) {
        Ok(declared) => {
            assert!(!declared.intent.switches.is_empty());
            let _ = declared.intent.unsupported();
        }
        Err(problems) => assert!(!problems.list.is_empty()),
    }
});
