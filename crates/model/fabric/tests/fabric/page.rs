//! The page of the manual has the keys that the reader knows.
//! `BLESS=1 cargo test -p bellrock-fabric --test fabric page` writes its tables.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use bellrock_fabric::intent::Hardware;
use bellrock_fabric::keys::{self, Key, NICIRA_FIELDS, OLD_FIELDS, Part};
use bellrock_openflow::Field;

const PAGE: &str = "../../../docs/book/src/reference/fabric-file.md";
const BEGIN: &str = "<!-- keys: made by crates/model/fabric/tests/fabric/page.rs -->\n";
const END: &str = "<!-- end of keys -->\n";

/// Sections, with what stands above their tables.
const SECTIONS: &[(&str, &[Key])] = &[
    ("The file", keys::TOP),
    ("dps.NAME", keys::DP),
    ("dps.NAME.lldp_beacon", keys::DP_LLDP),
    ("dps.NAME.stack", keys::DP_STACK),
    ("dps.NAME.dot1x", keys::DOT1X),
    ("dps.NAME.table_sizes", keys::TABLE_SIZES),
    ("dps.NAME.interfaces.PORT", keys::PORT),
    ("PORT.lldp_beacon", keys::PORT_LLDP),
    ("PORT.lldp_beacon.org_tlvs[]", keys::ORG_TLV),
    ("PORT.stack", keys::PORT_STACK),
    ("PORT.coprocessor", keys::COPROCESSOR),
    ("vlans.NAME", keys::VLAN),
    ("vlans.NAME.routes[]", keys::ROUTE),
    ("acls.NAME", keys::ACL),
    ("A rule, beside fields of packets", keys::RULE),
    ("actions", keys::ACTIONS),
    ("actions.output", keys::OUTPUT),
    ("output.failover", keys::FAILOVER),
    ("output.vlan_vids[]", keys::VLAN_VID),
    ("output.tunnel", keys::TUNNEL),
    ("actions.ct", keys::CT),
    ("actions.ct.nat", keys::NAT),
    ("meters.NAME", keys::METER),
    ("meters.NAME.entry", keys::METER_ENTRY),
    ("meters.NAME.entry.bands[]", keys::BAND),
    ("routers.NAME", keys::ROUTER),
    ("routers.NAME.bgp", keys::BGP),
];

#[test]
fn the_page_has_the_keys_that_the_reader_knows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}\n{}{END}{after}", tables());
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, made).unwrap();
    } else {
        let hint = "BLESS=1 cargo test -p bellrock-fabric --test fabric page";
        assert!(page == made, "{PAGE} is old; make it anew: {hint}");
    }
}

fn tables() -> String {
    let mut text = String::new();
    for (title, keys) in SECTIONS {
        let title = if title.contains(' ') { (*title).to_owned() } else { format!("`{title}`") };
        writeln!(text, "### {title}\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|")
            .unwrap();
        for Key { name, types, preset, range, part, meaning } in *keys {
            let range = match range {
                Some((least, most)) if least == most => String::new(),
                Some((least, most)) if *most < u32::MAX.into() => format!(", {least} to {most}"),
                _ => String::new(),
            };
            let part = if *part == Part::First { String::new() } else { format!(" *({part})*") };
            writeln!(text, "| `{name}` | {types}{range} | {preset} | {meaning}{part} |").unwrap();
        }
        text.push('\n');
    }
    let list = |names: &mut dyn Iterator<Item = String>| names.collect::<Vec<_>>().join(", ");
    let fields = list(&mut Field::BASIC.iter().map(|field| format!("`{}`", field.name())));
    let nicira = list(&mut NICIRA_FIELDS.iter().map(|(name, ..)| format!("`{name}`")));
    let old = list(&mut OLD_FIELDS.iter().map(|(old, new)| format!("`{old}` (`{new}`)")));
    let kinds = list(&mut Hardware::ALL.iter().map(|(name, _)| format!("`{name}`")));
    writeln!(text, "### Names\n\nFields of packets: {fields}.\n").unwrap();
    writeln!(text, "Fields of Open vSwitch: {nicira}.\n").unwrap();
    writeln!(text, "Old names of fields: {old}.\n\nKinds of switches (`hardware`): {kinds}.\n")
        .unwrap();
    text
}
