//! `bellrock static`: arguments and orders.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bellrock_config::values;
use bellrock_query::{
    ByName, ListStatic, Page, SetStatic, StaticEntry, StaticFlow, StaticGroup, StaticMeter,
    StaticState, SwitchRef,
};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_saphyr::UserMessageFormatter;

use super::read_text;
use crate::ask::{self, Ask, ask_all};
use crate::{Failure, problems, show};

/// Longest time to live: the most seconds that an order can name.
const MAX_TTL: Duration = Duration::from_secs(u32::MAX as u64);

/// Set static flows, groups and meters, and list them
///
/// Needs the app `static` in the chain. The switches keep the entries over restarts of switches and
/// of the controller. The command waits until the switches have confirmed a change.
#[derive(Debug, Args)]
pub(crate) struct StaticArgs {
    #[command(subcommand)]
    order: StaticCommand,
}

#[derive(Debug, Subcommand)]
enum StaticCommand {
    Add(AddArgs),
    Apply(ApplyArgs),
    Remove(RemoveArgs),
    List(ListArgs),
}

/// Gives the order, or lists.
pub(crate) fn run(args: &StaticArgs) -> Result<(), Failure> {
    match &args.order {
        StaticCommand::Add(added) => set(&added.ask, added.order(), argument),
        StaticCommand::Apply(applied) => applied.order().and_then(|order| {
            let names: Vec<_> = order.entries.iter().map(|it| it.name.clone()).collect();
            set(&applied.ask, order, |field| entry_and_field(&names, field))
        }),
        StaticCommand::Remove(removed) => set(&removed.ask, removed.order(), |_| None),
        StaticCommand::List(list) => {
            let text = |rows: &[_]| show::static_entries(rows, list.owner.as_deref());
            ask_all(&list.ask, |page| list.query(page), text)
        }
    }
}

/// Sets entries. `place`: what the user calls a field of the order.
fn set(
    asked: &Ask,
    order: SetStatic,
    place: impl FnOnce(&str) -> Option<String>,
) -> Result<(), Failure> {
    ask::order_by_fields(asked, order, place, show::static_answer, problems::static_entries)
}

/// Set one flow
///
/// It replaces the entry of the same name. Groups and meters are set by `bellrock static apply`.
#[derive(Debug, Args)]
struct AddArgs {
    /// Its name, by which it is changed and removed
    name: String,
    /// The switch: its datapath id or its name
    switch: SwitchRef,
    /// The packets, such as in_port=1,eth_type=0x0800,ipv4_dst=10.0.0.0/8
    #[arg(long = "match", value_name = "FIELDS", default_value = "any")]
    matching: String,
    /// What to do with them, such as set_field:10.0.0.7->ipv4_dst,output:3, or drop
    #[arg(long)]
    actions: String,
    /// Priority among the static flows, 0 to 4095
    #[arg(long, value_name = "N", default_value_t = StaticFlow::default().priority)]
    priority: u16,
    /// Number of the table
    #[arg(long, value_name = "N", default_value_t = 0)]
    table: u8,
    /// Remove it after this time, such as 1h
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    ttl: Option<Duration>,
    #[command(flatten)]
    owner: Owner,
    #[command(flatten)]
    ask: Ask,
}

/// Set the entries of a file
///
/// The file is a list in YAML or JSON, in the form that REST takes, or that `static list --json`
/// prints: `- {name: web, switch: s1, flow: {match: in_port=1, actions: "output:2"}}`. All entries
/// are set, or none.
#[derive(Debug, Args)]
struct ApplyArgs {
    /// The file; - for standard input
    file: PathBuf,
    /// Remove the owner's entries that are not in the file
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    owner: Owner,
    #[command(flatten)]
    ask: Ask,
}

/// Remove entries by name
#[derive(Debug, Args)]
struct RemoveArgs {
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    owner: Owner,
    #[command(flatten)]
    ask: Ask,
}

/// List the entries and their states
#[derive(Debug, Args)]
struct ListArgs {
    /// Only those of this switch
    #[arg(long)]
    switch: Option<SwitchRef>,
    /// Only those of this owner
    #[arg(long)]
    owner: Option<String>,
    #[command(flatten)]
    ask: Ask,
}

#[derive(Debug, Args)]
struct Owner {
    /// The owner of the entries; only orders of the same owner change them
    #[arg(long, value_name = "NAME", default_value = bellrock_query::DEFAULT_OWNER)]
    owner: String,
}

impl Owner {
    fn order(&self) -> SetStatic {
        SetStatic { owner: Some(self.owner.clone()), ..SetStatic::default() }
    }
}

fn ttl(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=MAX_TTL;
    values::time(text, range).map_err(|expected| format!("give {expected}"))
}

impl AddArgs {
    fn order(&self) -> SetStatic {
        let flow = StaticFlow {
            table: self.table,
            priority: self.priority,
            matching: self.matching.clone(),
            actions: self.actions.clone(),
        };
        let entry = StaticEntry {
            name: self.name.clone(),
            switch: self.switch.clone(),
            ttl_seconds: self.ttl.map(|ttl| ttl.as_secs().try_into().unwrap_or(u32::MAX)),
            flow: Some(flow),
            group: None,
            meter: None,
        };
        SetStatic { entries: vec![entry], ..self.owner.order() }
    }
}

/// The argument of `static add` that a field of its order comes from.
fn argument(field: &str) -> Option<String> {
    let (_, inside) = split_entry(field)?;
    let (base, part) = inside.split_at(inside.find('[').unwrap_or(inside.len()));
    let name = match base {
        "name" => "NAME",
        "switch" => "SWITCH",
        "flow.match" => "--match",
        "flow.actions" => "--actions",
        "flow.priority" => "--priority",
        "flow.table" => "--table",
        "ttl_seconds" => "--ttl",
        _ => return None,
    };
    Some(format!("{name}{part}"))
}

/// The entry of an order, by its name, and the field in it.
fn entry_and_field(entries: &[String], field: &str) -> Option<String> {
    let (index, inside) = split_entry(field)?;
    let name = show::printable(entries.get(index)?);
    Some(if inside.is_empty() {
        format!("the entry {name}")
    } else {
        format!("the entry {name}, {inside}")
    })
}

/// `entries[3].flow.match`: the number and the field.
fn split_entry(field: &str) -> Option<(usize, &str)> {
    let (index, inside) = field.strip_prefix("entries[")?.split_once(']')?;
    Some((index.parse().ok()?, inside.trim_start_matches('.')))
}

impl ApplyArgs {
    /// Reads the file.
    fn order(&self) -> Result<SetStatic, Failure> {
        let entries = read(&self.file, &self.owner.owner)?;
        Ok(SetStatic { entries, replace: self.replace, ..self.owner.order() })
    }
}

impl ListArgs {
    fn query(&self, page: Page) -> ListStatic {
        ListStatic { name: None, switch: self.switch.clone(), owner: self.owner.clone(), page }
    }
}

impl RemoveArgs {
    fn order(&self) -> SetStatic {
        SetStatic { remove: self.names.clone(), ..self.owner.order() }
    }
}

/// An entry of a file: as it is ordered, or as it is listed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    name: String,
    switch: Option<String>,
    ttl_seconds: Option<u32>,
    flow: Option<StaticFlow>,
    group: Option<StaticGroup>,
    meter: Option<StaticMeter>,
    // What a list says besides.
    dpid: Option<String>,
    owner: Option<String>,
    #[serde(rename = "switch_name")]
    _switch_name: Option<String>,
    #[serde(rename = "state")]
    _state: Option<StaticState>,
    #[serde(rename = "why")]
    _why: Option<String>,
}

impl FileEntry {
    /// The entry to order for this owner.
    fn order(self, owner: &str) -> Result<StaticEntry, String> {
        let FileEntry { name, ttl_seconds, flow, group, meter, .. } = self;
        if let Some(other) = self.owner.filter(|other| other != owner) {
            return Err(format!(
                "the entry {name} has the owner {other}, and the order {owner}; give --owner {other}"
            ));
        }
        let no_switch = || format!("the entry {name} has no `switch`; {FORM}");
        let Ok(switch) = self.switch.or(self.dpid).ok_or_else(no_switch)?.parse();
        Ok(StaticEntry { name, switch, ttl_seconds, flow, group, meter })
    }
}

fn read(path: &Path, owner: &str) -> Result<Vec<StaticEntry>, Failure> {
    let (name, text) = read_text(path, "set the entries in several files")?;
    // An empty file is rather the rest of a failure than the wish to have nothing.
    if text.trim().is_empty() {
        let why = format!("{name}: it is empty; a list without entries is []");
        return Err(Failure::Failed(why));
    }
    parse(&name, &text, owner)
}

/// Reads a list of entries, for this owner. An error has the place, what is wrong, and the form of
/// an entry.
fn parse(name: &str, text: &str, owner: &str) -> Result<Vec<StaticEntry>, Failure> {
    let options = serde_saphyr::options! { with_snippet: false };
    let read = serde_saphyr::from_str_with_options::<ByName<Vec<FileEntry>>>(text, options);
    let ByName(entries) = read.map_err(|error| {
        let what = error.render_with_formatter(&UserMessageFormatter);
        let what = what.split(" at line ").next().unwrap_or(&what);
        let place = error.location().map_or_else(String::new, |location| {
            format!("{}:{}:", location.line(), location.column())
        });
        Failure::Failed(format!("{name}:{place} {what}; {FORM}"))
    })?;
    let entries = entries.into_iter().map(|entry| entry.order(owner));
    entries.collect::<Result<_, _>>().map_err(|why| Failure::Failed(format!("{name}: {why}")))
}

/// The form of a file, for errors.
const FORM: &str = "a file is a list of entries, such as\n\
     - {name: web, switch: s1, flow: {match: in_port=1, actions: \"output:2\"}}";

#[cfg(test)]
mod tests {
    use bellrock_api::Dpid;
    use bellrock_query::{GroupKind, StaticBucket, StaticRow};

    use super::*;

    #[test]
    fn a_file_that_is_wrong_is_told_its_place_and_the_right_form() {
        for (text, place, part) in [
            ("- {name: web, switch: s1, flow: {actions: drop}\n", ":", ""),
            ("- name: web\n  switch: s1\n  flow: {nonsense: 1}\n", ":3:", "nonsense"),
            ("- [web, s1]\n", ":1:", "expected mapping start"),
            ("name: web\n", ":1:", ""),
        ] {
            let Err(Failure::Failed(said)) = parse("web.yaml", text, "operator") else {
                panic!("{text}")
            };
            assert!(said.starts_with(&format!("web.yaml{place}")), "{said}");
            assert!(said.contains(part) && said.contains("- {name: web, switch: s1"), "{said}");
            assert_eq!(said.lines().count(), 2, "{said}");
        }
        let right = "- {name: web, switch: s1, flow: {match: in_port=1, actions: \"output:2\"}}\n";
        let read = parse("web.yaml", right, "operator");
        assert!(matches!(read, Ok(entries) if entries.len() == 1));
    }

    #[test]
    fn an_error_names_what_the_user_wrote() {
        for (field, name) in [
            ("entries[0].flow.match", Some("--match")),
            ("entries[0].flow.actions[1]", Some("--actions[1]")),
            ("entries[0].switch", Some("SWITCH")),
            ("entries[0].ttl_seconds", Some("--ttl")),
            ("owner", None),
        ] {
            assert_eq!(argument(field).as_deref(), name, "{field}");
        }
        let entries = ["web".to_owned(), "db".to_owned()];
        for (field, name) in [
            ("entries[1].group.buckets[0].actions", Some("the entry db, group.buckets[0].actions")),
            ("entries[0]", Some("the entry web")),
            ("entries[2].switch", None),
            ("owner", None),
        ] {
            assert_eq!(entry_and_field(&entries, field).as_deref(), name, "{field}");
        }
    }

    #[test]
    fn listed_entries_can_be_ordered_again_for_the_same_owner() {
        let flow = StaticFlow { actions: "output:2".to_owned(), ..StaticFlow::default() };
        let bucket = StaticBucket {
            watch_port: Some("2".to_owned()),
            actions: "output:2".to_owned(),
            ..StaticBucket::default()
        };
        let buckets = vec![bucket];
        let group = StaticGroup { id: 7, kind: GroupKind::FastFailover, buckets };
        let row = |name: &str, flow, group| StaticRow {
            name: name.to_owned(),
            owner: "alice".to_owned(),
            dpid: Dpid(0xa1),
            switch_name: Some("core-1".to_owned()),
            state: StaticState::Refused,
            why: Some("it has no place".to_owned()),
            ttl_seconds: Some(60),
            flow,
            group,
            meter: None,
        };
        let rows = [row("web", Some(flow), None), row("spare", None, Some(group))];
        let text = show::json(&serde_json::to_value(&rows).unwrap()).unwrap();
        let Ok(read) = parse("-", &text, "alice") else { panic!("{text}") };
        for (entry, row) in read.iter().zip(&rows) {
            assert_eq!((&entry.name, entry.switch.to_string()), (&row.name, row.dpid.to_string()));
            assert_eq!((&entry.flow, &entry.group), (&row.flow, &row.group));
            assert_eq!(entry.ttl_seconds, Some(60));
        }
        assert_eq!(read.len(), rows.len());
        let Err(Failure::Failed(said)) = parse("-", &text, "operator") else { panic!("{text}") };
        assert_eq!(
            said,
            "-: the entry web has the owner alice, and the order operator; give --owner alice"
        );
        let nowhere = r#"[{"name": "web", "flow": {"actions": "drop"}}]"#;
        let Err(Failure::Failed(said)) = parse("-", nowhere, "operator") else { panic!() };
        assert!(said.starts_with("-: the entry web has no `switch`; a file is a list"), "{said}");
    }

    /// As the files of an operator have it.
    #[test]
    fn a_port_that_is_watched_may_be_a_number() {
        let text = "- {name: g, switch: s1, group: {id: 1, type: fast_failover, buckets: \
                    [{watch_port: 2, actions: 'output:2'}, {watch_port: LOCAL, actions: drop}]}}\n";
        let Ok(read) = parse("web.yaml", text, "operator") else { panic!("{text}") };
        let buckets = &read[0].group.as_ref().unwrap().buckets;
        let ports: Vec<_> = buckets.iter().map(|bucket| bucket.watch_port.as_deref()).collect();
        assert_eq!(ports, [Some("2"), Some("LOCAL")]);
    }
}
