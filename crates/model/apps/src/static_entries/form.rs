//! The form in which a static entry is stored: words, in the texts that operators write.
//!
//! ```text
//! entry/web   "number=7 owner=al switch=... table=0 priority=9 match=in_port=1 actions=output:3"
//! entry/both  "number=8 owner=al switch=... group=7 type=select bucket=1/-/-/output:3"
//! entry/limit "number=9 owner=al switch=... end=1767225600 meter=5 unit=kbps band=10000/0/-"
//! ```
//!
//! `end` is in seconds since 1970. A bucket has weight, watched port, watched group and actions; a
//! band has rate, burst and levels of the DSCP remark.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use bellrock_api::openflow::{Band, BandType, FlowCommand, Group, GroupType, MeterFlags, Port};
use bellrock_api::{BucketEntry, Flow, GroupEntry, Match, MeterEntry, parse_actions};
use bellrock_book::Words;
use bellrock_services::desired::DesiredEntry;

use super::order::StaticEntry;

/// What the names of entries begin with in the store.
const PREFIX: &str = "entry/";

/// Stands for a value that is not there.
const NONE: &str = "-";

const GROUP_TYPES: [(&str, GroupType); 4] = [
    ("all", GroupType::All),
    ("select", GroupType::Select),
    ("indirect", GroupType::Indirect),
    ("fast_failover", GroupType::FastFailover),
];

/// Returns the name of an entry in the store.
#[must_use]
pub fn stored_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns the name of the entry that a name in the store is of.
#[must_use]
pub fn entry_name(stored: &str) -> Option<&str> {
    stored.strip_prefix(PREFIX)
}

/// Returns the value of an entry in the store.
#[must_use]
pub fn show_stored(entry: &StaticEntry) -> String {
    let words = Words::default()
        .with("number", entry.number)
        .with("owner", &entry.owner)
        .with("switch", entry.dpid)
        .with_some("end", entry.end.map(|end| end.as_secs()));
    match &entry.wanted {
        DesiredEntry::Flow(flow) => words
            .with("table", flow.table)
            .with("priority", flow.priority)
            .with("match", &flow.matching)
            .with(
                "actions",
                flow.with_flow_mod(FlowCommand::Add, |it| it.instructions.to_string()),
            ),
        DesiredEntry::Group(group) => {
            let kind = GROUP_TYPES.iter().find(|(_, kind)| *kind == group.kind);
            let words = words.with("group", group.id).with("type", kind.map_or("all", |it| it.0));
            group.buckets.iter().fold(words, |words, it| words.with("bucket", show_bucket(it)))
        }
        DesiredEntry::Meter(meter) => {
            let unit = if meter.flags.contains(MeterFlags::PKTPS) { "pps" } else { "kbps" };
            let words = words.with("meter", meter.id).with("unit", unit);
            meter.bands.iter().fold(words, |words, band| words.with("band", show_band(band)))
        }
    }
    .show()
}

/// Reads an entry from its name and value in the store.
///
/// # Errors
/// What is wrong, for the log: a newer release has written it, or it is damaged.
pub fn read_stored(stored: &str, value: &str) -> Result<StaticEntry, String> {
    let words = Words::parse(value)?;
    let name = entry_name(stored).ok_or_else(|| format!("{stored} is no entry"))?;
    let wanted = match (words.text("actions"), words.text("group"), words.text("meter")) {
        (Some(actions), None, None) => read_flow(&words, actions)?.into(),
        (None, Some(_), None) => read_group(&words)?.into(),
        (None, None, Some(_)) => read_meter(&words)?.into(),
        _ => return Err("it is not one flow, one group or one meter".into()),
    };
    Ok(StaticEntry {
        name: name.to_owned(),
        owner: words.read("owner")?,
        dpid: words.read("switch")?,
        wanted,
        end: words.read_some("end")?.map(Duration::from_secs),
        number: words.read("number")?,
    })
}

fn read_flow(words: &Words, actions: &str) -> Result<Flow, String> {
    let matching = words.text("match").unwrap_or_default().parse::<Match>();
    let matching = matching.map_err(|error| error.to_string())?;
    let flow = Flow::new(matching).table(words.read("table")?).priority(words.read("priority")?);
    flow.instructions(actions).map_err(|error| error.to_string())
}

fn read_group(words: &Words) -> Result<GroupEntry, String> {
    let text = words.text("type").unwrap_or_default();
    let kind = GROUP_TYPES.iter().find(|(name, _)| *name == text);
    let (_, kind) = kind.ok_or_else(|| format!("{text} is not a type of a group"))?;
    let group = GroupEntry::new(words.read("group")?, *kind);
    words.all("bucket").try_fold(group, |group, text| Ok(group.bucket(read_bucket(text)?)))
}

fn show_bucket(bucket: &BucketEntry) -> String {
    let port = show_some((bucket.watch_port != Port::ANY).then_some(bucket.watch_port));
    let group = show_some((bucket.watch_group != Group::ANY).then_some(bucket.watch_group));
    let actions: Vec<_> = bucket.actions.iter().map(ToString::to_string).collect();
    format!("{}/{port}/{group}/{}", bucket.weight, actions.join(","))
}

fn read_bucket(text: &str) -> Result<BucketEntry, String> {
    let wrong = || format!("{text} is not a bucket");
    let mut parts = text.splitn(4, '/');
    let mut next = || parts.next().ok_or_else(wrong);
    let (weight, port, group, actions) = (next()?, next()?, next()?, next()?);
    Ok(BucketEntry {
        weight: weight.parse().map_err(|_| wrong())?,
        watch_port: read_some(port)?.unwrap_or(Port::ANY),
        watch_group: read_some(group)?.unwrap_or(Group::ANY),
        actions: parse_actions(actions).map_err(|error| error.to_string())?,
    })
}

fn read_meter(words: &Words) -> Result<MeterEntry, String> {
    let bands: Vec<_> = words.all("band").map(read_band).collect::<Result<_, _>>()?;
    let mut flags = match words.text("unit") {
        Some("pps") => MeterFlags::PKTPS,
        _ => MeterFlags::KBPS,
    };
    if bands.iter().any(|band| band.burst_size > 0) {
        flags |= MeterFlags::BURST;
    }
    Ok(MeterEntry { id: words.read("meter")?, flags, bands })
}

fn show_band(band: &Band<'_>) -> String {
    let levels = match band.kind {
        BandType::DscpRemark(levels) => Some(levels),
        _ => None,
    };
    format!("{}/{}/{}", band.rate, band.burst_size, show_some(levels))
}

fn read_band(text: &str) -> Result<Band<'static>, String> {
    let wrong = || format!("{text} is not a band");
    let mut parts = text.split('/');
    let mut next = || parts.next().ok_or_else(wrong);
    let (rate, burst, levels) = (next()?, next()?, next()?);
    Ok(Band {
        rate: rate.parse().map_err(|_| wrong())?,
        burst_size: burst.parse().map_err(|_| wrong())?,
        kind: read_some(levels)?.map_or(BandType::Drop, BandType::DscpRemark),
    })
}

fn show_some(value: Option<impl Display>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

fn read_some<T: FromStr>(text: &str) -> Result<Option<T>, String> {
    match text {
        NONE => Ok(None),
        text => text.parse().map(Some).map_err(|_| format!("{text} is wrong")),
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::Dpid;

    use super::*;

    fn entry(wanted: impl Into<DesiredEntry>) -> StaticEntry {
        StaticEntry {
            name: "web".to_owned(),
            owner: "alice of ops".to_owned(),
            dpid: Dpid(0xa1),
            wanted: wanted.into(),
            end: Some(Duration::from_secs(1_767_225_600)),
            number: 7,
        }
    }

    fn flow(matching: &str, instructions: &str) -> Flow {
        let flow = Flow::new(matching.parse().unwrap()).table(1).priority(9);
        flow.instructions(instructions).unwrap()
    }

    #[test]
    fn an_entry_reads_as_it_was_stored() {
        let output = parse_actions("output:1,group:9").unwrap();
        let failover = GroupEntry::new(7, GroupType::FastFailover)
            .bucket(BucketEntry { watch_port: Port(1), ..BucketEntry::of(&output) })
            .bucket(BucketEntry { watch_group: 8, ..BucketEntry::of(&[]) });
        let band = |rate, burst_size, kind| Band { rate, burst_size, kind };
        let meter = MeterEntry {
            id: 5,
            flags: MeterFlags::PKTPS | MeterFlags::BURST,
            bands: vec![band(100, 10, BandType::DscpRemark(1)), band(200, 0, BandType::Drop)],
        };
        let entries = [
            entry(flow("any", "drop")),
            entry(flow(
                "in_port=1,eth_type=0x0800,ipv4_dst=10.0.0.0/8",
                "meter:3,output:3,goto_table:2",
            )),
            entry(flow("any", "set_field:10.0.0.7->ipv4_dst,write_metadata:0x1/0xff")),
            StaticEntry { end: None, ..entry(failover) },
            entry(GroupEntry::new(1, GroupType::Select).bucket(BucketEntry::of(&output).weight(3))),
            entry(meter),
            entry(MeterEntry::drop_above_kbps(6, 1000)),
        ];
        for entry in entries {
            let value = show_stored(&entry);
            assert_eq!(read_stored("entry/web", &value), Ok(entry), "{value}");
        }
    }

    #[test]
    fn a_value_that_is_no_entry_is_refused() {
        let words = "number=7 owner=a switch=a1";
        for (value, part) in [
            ("{}".to_owned(), "another form"),
            (format!("\"{words}\""), "not one flow"),
            (format!("\"{words} group=1 meter=1\""), "not one flow"),
            (format!("\"{words} group=1 type=any\""), "any is not a type"),
            (format!("\"{words} group=1 type=all bucket=1/-/output:1\""), "not a bucket"),
            (format!("\"{words} meter=1 unit=kbps band=1/2\""), "not a band"),
            (format!("\"{words} table=0 priority=1 match=x=1 actions=drop\""), "no field \"x\""),
            ("\"owner=a switch=a1 meter=1\"".to_owned(), "number is missing"),
        ] {
            let error = read_stored("entry/web", &value).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
        }
    }
}
