//! Texts of networks of some size, for tests of counts and for the bench.

use std::fmt::Write;
use std::io;
use std::path::Path;

use bellrock_fabric::{Intent, read};

/// The intent of a file.
pub(crate) fn intent(text: &str) -> Intent {
    let files = |path: &Path| match path.to_str() {
        Some("faucet.yaml") => Ok(text.to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "absent")),
    };
    let declared = read(Path::new("faucet.yaml"), &files);
    declared.unwrap_or_else(|problems| panic!("{problems}\nin:\n{text}")).intent
}

/// The first VLAN id.
const FIRST: u32 = 100;

/// A switch whose ports all are in all VLANs, with tags.
pub(crate) fn trunks(ports: u32, vlans: u32) -> String {
    network(ports, vlans, 0, false)
}

/// The same, but port 1 is in the first VLAN only, without a tag.
pub(crate) fn access_and_trunks(ports: u32, vlans: u32) -> String {
    network(ports, vlans, 1, false)
}

/// As [`trunks`], and each VLAN has an ACL of three rules.
#[allow(dead_code, reason = "for the bench only")]
pub(crate) fn with_acls(ports: u32, vlans: u32) -> String {
    network(ports, vlans, 0, true)
}

fn network(ports: u32, vlans: u32, access: u32, has_acls: bool) -> String {
    let mut text = String::from("vlans:\n");
    for vid in FIRST..FIRST + vlans {
        let acl = if has_acls { format!(", acls_in: [a{vid}]") } else { String::new() };
        writeln!(text, "  v{vid}: {{vid: {vid}{acl}}}").unwrap();
    }
    if has_acls {
        text.push_str("acls:\n");
        for vid in FIRST..FIRST + vlans {
            writeln!(
                text,
                "  a{vid}:\n  - {{dl_type: 0x800, nw_proto: 6, tcp_dst: 23, actions: {{allow: 0}}}}\n  - {{dl_type: 0x800, ipv4_dst: 10.0.0.0/8, actions: {{allow: 1}}}}\n  - {{actions: {{allow: 1}}}}"
            )
            .unwrap();
        }
    }
    text.push_str("dps:\n  sw1:\n    dp_id: 1\n    interfaces:\n");
    let all: Vec<String> = (FIRST..FIRST + vlans).map(|vid| format!("v{vid}")).collect();
    let all = all.join(", ");
    for port in 1..=ports {
        match port <= access {
            true => writeln!(text, "      {port}: {{native_vlan: v{FIRST}}}").unwrap(),
            false => writeln!(text, "      {port}: {{tagged_vlans: [{all}]}}").unwrap(),
        }
    }
    text
}
