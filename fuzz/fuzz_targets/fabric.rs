//! A file that declares a network is an intent or a list of problems. An intent compiles for each
//! switch, or is refused with reasons.
#![no_main]

use std::io;
use std::path::Path;
use std::sync::Arc;

use bellrock_fabric::Facts;
use bellrock_fabric::intent::SwitchId;
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
            let intent = Arc::new(declared.intent);
            let facts = Facts::with_ports(1..=8);
            for (id, _) in (0..).zip(&intent.switches) {
                match bellrock_fabric::compile(&intent, SwitchId(id), &facts) {
                    Ok(tables) => assert!(bellrock_fabric::diff(&tables, &tables).is_empty()),
                    Err(refused) => assert!(!refused.0.is_empty()),
                }
            }
        }
        Err(problems) => assert!(!problems.list.is_empty()),
    }
});
