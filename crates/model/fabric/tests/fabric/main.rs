//! The reader against files: what it refuses, with place and reason, what it accepts, and what it
//! makes of it. The compiler against networks: their tables, the changes between them, and packets
//! through them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod accepted;
mod acls;
mod changes;
mod checked;
mod compile;
mod included;
mod networks;
mod oracle;
mod packets;
mod page;
mod refused;
mod unsupported;

use std::io;
use std::path::Path;

use bellrock_fabric::{Declared, Problems, read};
use networks::intent;

/// Files in memory.
struct Texts<'t>(&'t [(&'t str, &'t str)]);

impl bellrock_fabric::Files for Texts<'_> {
    fn text(&self, path: &Path) -> io::Result<String> {
        let file = self.0.iter().find(|(name, _)| Path::new(name) == path);
        let absent = || io::Error::new(io::ErrorKind::NotFound, "absent");
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(absent)
    }
}

fn declared(text: &str) -> Result<Declared, Problems> {
    read(Path::new("faucet.yaml"), &Texts(&[("faucet.yaml", text)]))
}

/// A switch whose port 1 has these keys, from line 6 and column 11 on.
fn port(keys: &str) -> String {
    format!(
        "vlans:\n  office: {{vid: 100}}\ndps:\n  sw1: {{dp_id: 1, interfaces: {{\n    2: {{native_vlan: office}},\n    1:   {{{keys}}}}}}}\n"
    )
}

/// A switch with these keys, from line 5 and column 5 on.
fn switch(keys: &str) -> String {
    format!(
        "dps:\n  sw1:\n    dp_id: 1\n    interfaces: {{1: {{native_vlan: 100}}, two: {{number: 2, native_vlan: 100}}}}\n    {keys}\n"
    )
}

/// A VLAN with these keys, from line 7 and column 5 on.
fn vlan(keys: &str) -> String {
    format!(
        "dps:\n  sw1:\n    dp_id: 1\n    interfaces: {{1: {{native_vlan: 100}}}}\nvlans:\n  100:\n    {keys}\n"
    )
}

/// A rule with these keys, from line 6 and column 7 on, of an ACL that a port uses.
fn rule(keys: &str) -> String {
    format!(
        "dps:\n  sw1: {{dp_id: 1, interfaces: {{1: {{native_vlan: 100, acls_in: [a]}}, two: {{number: 2, native_vlan: 100}}}}}}\nmeters: {{m: {{meter_id: 1, entry: {{flags: KBPS, bands: [{{type: DROP, rate: 1}}]}}}}}}\nacls:\n  a:\n    - {keys}\n"
    )
}

/// Two switches in a stack; `first` and `second` are the keys of their port 1, from column 15 of
/// lines 4 and 8 on.
fn stack(first: &str, second: &str) -> String {
    format!(
        "dps:\n  sw1: {{dp_id: 1, stack: {{priority: 1}}, interfaces: {{\n      2: {{native_vlan: 100}},\n      1:     {{{first}}}}}}}\n\n  sw2: {{dp_id: 2, interfaces: {{\n      2: {{native_vlan: 100}},\n      1:     {{{second}}}}}}}\n"
    )
}
