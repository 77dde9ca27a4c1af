//! A circuit as it is stored: its definition, its numbers, and its route.
//!
//! The entry `circuit/NUMBER` of the store has all that decides about a circuit's flows. One
//! controller writes it, the leader; each lays what is stored ([`layout`](super::layout)), so the
//! switches of all masters have flows that fit together, and a restart changes none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use bellrock_api::SwitchPort;
use bellrock_book::{BookModel, EntryBook, Words};
use bellrock_services::paths::Hop;

use super::circuit::{Circuit, MAX_ENDPOINTS};
use super::layout::{CircuitLayout, LayoutNumbers, generation_tags, layout};
use super::route::{CircuitRoute, Detour, EndpointPlace, GuardedHop};

/// Maximum number of circuits: each has two VLANs or more of the 4,094.
const MAX_CIRCUITS: usize = 2047;

/// The circuits of the store.
pub(super) type Allocations = EntryBook<CircuitModel>;

/// Stored circuits, by number.
pub(super) type StoredCircuits = BTreeMap<usize, Arc<StoredCircuit>>;

/// A stored circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredCircuit {
    pub(super) circuit: Circuit,
    /// The intent of its entries, which is in the cookies of its flows.
    pub(super) intent: u32,
    pub(super) vlans: Range<u16>,
    /// Which of its VLANs and groups the route has, from 0.
    pub(super) generation: u16,
    /// `None`: it was not laid yet.
    pub(super) route: Option<CircuitRoute>,
    /// Why the network has no route for its present definition. The last route stays.
    pub(super) down: Option<String>,
}

impl StoredCircuit {
    /// The tags of a generation.
    pub(super) fn tags(&self, generation: u16) -> Range<u16> {
        generation_tags(&self.circuit, &self.vlans, generation)
    }

    /// The layout of its route.
    pub(super) fn layout(&self, number: u32) -> Option<CircuitLayout> {
        let generation = self.generation;
        let numbers = LayoutNumbers { number, generation, tag: self.tags(generation).start };
        self.route.as_ref().map(|route| layout(route, numbers))
    }

    /// Whether the flows of another one are the same.
    pub(super) fn has_flows_of(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.intent, it.generation, it.vlans.clone());
        of(self) == of(other) && self.route == other.route
    }
}

/// Name of a circuit in the store.
pub(super) fn name(number: usize) -> String {
    format!("circuit/{number}")
}

/// The circuits of a store.
pub(super) fn stored_circuits(book: &Allocations) -> StoredCircuits {
    let number = |name: &str| name.strip_prefix("circuit/")?.parse().ok();
    let all = book.values().into_iter();
    all.filter_map(|(name, circuit)| Some((number(&name)?, circuit)))
        .filter(|(number, _)| *number < MAX_CIRCUITS)
        .collect()
}

/// Reads and writes circuits of a store.
#[derive(Debug, Default)]
pub(super) struct CircuitModel;

impl BookModel for CircuitModel {
    type Value = StoredCircuit;

    fn read(_: &str, value: &str) -> Result<StoredCircuit, String> {
        let words = Words::parse(value)?;
        let wrong = |text: &str| format!("{text} has another form");
        let ends = words.all("end").map(|end| end.parse().map_err(|_| wrong(end)));
        let endpoints: Vec<_> = ends.collect::<Result<_, _>>()?;
        if !(2..=MAX_ENDPOINTS).contains(&endpoints.len()) {
            return Err(format!("{} ends", endpoints.len()));
        }
        let (first, count): (u16, u16) = (words.read("vlan")?, words.read("vlans")?);
        let end = first.checked_add(count).ok_or_else(|| wrong("vlans"))?;
        let stored = StoredCircuit {
            circuit: Circuit { name: words.read("name")?, endpoints },
            intent: words.read("intent")?,
            vlans: first..end,
            generation: words.read("generation")?,
            route: read_route(&words)?,
            down: words.text("down").map(str::to_owned),
        };
        let tags = stored.tags(stored.generation);
        if tags.is_empty() || tags.end > stored.vlans.end {
            return Err(wrong("generation"));
        }
        Ok(stored)
    }

    fn show(stored: &StoredCircuit) -> String {
        let StoredCircuit { circuit, intent, vlans, generation, route, down } = stored;
        let words = Words::default().with("name", &circuit.name);
        let words = circuit.endpoints.iter().fold(words, |words, end| words.with("end", end));
        let words = words
            .with("intent", intent)
            .with("vlan", vlans.start)
            .with("vlans", vlans.end - vlans.start)
            .with("generation", generation)
            .with_some("down", down.as_ref());
        match route {
            Some(route) => show_route(words, route),
            None => words,
        }
        .show()
    }

    fn change(&mut self, _: &str, _: Option<&StoredCircuit>, _: Option<&StoredCircuit>) {}
}

/// A word for each place, path and detour. A detour has the indexes of its path and of its link
/// there, and its tag.
fn show_route(words: Words, route: &CircuitRoute) -> Words {
    let place = |place: &EndpointPlace| {
        let option = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let tags = if place.pushes_tags { "push" } else { "set" };
        let vlan = option(place.vlan.map(|vlan| vlan.to_string()));
        let host = option(place.host.map(|host| host.to_string()));
        format!("{},{tags},{vlan},{host}", port_text(place.at))
    };
    let mut words = route.places.iter().fold(words, |words, it| words.with("place", place(it)));
    for (index, path) in route.paths.iter().enumerate() {
        words = words.with("path", hops_text(path.iter().map(|link| link.hop)));
        for (link, guarded) in path.iter().enumerate() {
            if let Some(Detour { tag, hops }) = &guarded.detour {
                let hops = hops_text(hops.iter().copied());
                words = words.with("detour", format!("{index},{link},{tag},{hops}"));
            }
        }
    }
    words
}

fn read_route(words: &Words) -> Result<Option<CircuitRoute>, String> {
    let wrong = |text: &str| format!("{text} has another form");
    let place = |text: &str| {
        let mut parts = text.split(',');
        let at = parts.next()?.parse().ok()?;
        let pushes_tags = match parts.next()? {
            "push" => true,
            "set" => false,
            _ => return None,
        };
        let (vlan, host) = (optional(parts.next()?)?, optional(parts.next()?)?);
        Some(EndpointPlace { at, vlan, host, pushes_tags })
    };
    let places = words.all("place").map(|text| place(text).ok_or_else(|| wrong(text)));
    let places: Vec<_> = places.collect::<Result<_, _>>()?;
    let path = |text: &str| {
        let bare = |hop| GuardedHop { hop, detour: None };
        let hops = read_hops(text).ok_or_else(|| wrong(text))?;
        Ok::<_, String>(hops.into_iter().map(bare).collect::<Vec<_>>())
    };
    let mut paths: Vec<_> = words.all("path").map(path).collect::<Result<_, _>>()?;
    for text in words.all("detour") {
        let mut parts = text.splitn(4, ',');
        let mut detour = || -> Option<()> {
            let (path, link): (usize, usize) =
                (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let tag = parts.next()?.parse().ok()?;
            let hops = read_hops(parts.next()?).filter(|hops| !hops.is_empty())?;
            paths.get_mut(path)?.get_mut(link)?.detour = Some(Detour { tag, hops });
            Some(())
        };
        detour().ok_or_else(|| wrong(text))?;
    }
    let wanted = if places.len() == 2 { 2 } else { places.len() };
    if paths.len() != wanted {
        return Err(format!("{} places and {} paths", places.len(), paths.len()));
    }
    Ok((!places.is_empty()).then_some(CircuitRoute { places, paths }))
}

/// A value, or `-`.
fn optional<T: FromStr>(text: &str) -> Option<Option<T>> {
    if text == "-" { Some(None) } else { text.parse().ok().map(Some) }
}

fn port_text(at: SwitchPort) -> String {
    format!("{:x}:{}", at.dpid.0, at.port)
}

fn hops_text(hops: impl Iterator<Item = Hop>) -> String {
    let text = |hop: Hop| format!("{}>{}", port_text(hop.from), port_text(hop.to));
    hops.map(text).collect::<Vec<_>>().join(",")
}

fn read_hops(text: &str) -> Option<Vec<Hop>> {
    let hop = |text: &str| {
        let (from, to) = text.split_once('>')?;
        Some(Hop { from: from.parse().ok()?, to: to.parse().ok()? })
    };
    text.split(',').filter(|text| !text.is_empty()).map(hop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(text: &str) -> SwitchPort {
        text.parse().unwrap()
    }

    fn hop(from: &str, to: &str) -> Hop {
        Hop { from: port(from), to: port(to) }
    }

    fn blue() -> StoredCircuit {
        let place = |at: &str, host: Option<&str>| EndpointPlace {
            at: port(at),
            vlan: host.map(|_| 100),
            host: host.map(|host| host.parse().unwrap()),
            pushes_tags: host.is_none(),
        };
        let detour = Detour { tag: 2001, hops: vec![hop("1:3", "3:2"), hop("3:1", "2:3")] };
        let there = GuardedHop { hop: hop("1:2", "2:2"), detour: Some(detour) };
        let back = GuardedHop { hop: hop("2:2", "1:2"), detour: None };
        StoredCircuit {
            circuit: "blue 1:1 02:00:00:00:00:07".parse().unwrap(),
            intent: 7 << 20 | 3,
            vlans: 2000..2008,
            generation: 0,
            route: Some(CircuitRoute {
                places: vec![place("1:1", None), place("2:1", Some("02:00:00:00:00:07"))],
                paths: vec![vec![there], vec![back]],
            }),
            down: None,
        }
    }

    #[test]
    fn a_circuit_reads_as_it_was_written() {
        let blue = blue();
        let text = CircuitModel::show(&blue);
        assert_eq!(
            text,
            "\"name=blue end=0000000000000001:1 end=02:00:00:00:00:07 intent=7340035 vlan=2000 vlans=8 \
             generation=0 place=1:1,push,-,- place=2:1,set,100,02:00:00:00:00:07 path=1:2>2:2 \
             detour=0,0,2001,1:3>3:2,3:1>2:3 path=2:2>1:2\""
        );
        assert_eq!(CircuitModel::read("circuit/6", &text), Ok(blue.clone()));
        let down = Some("host 02:00:00:00:00:07 has not been seen; 100% \"sure\"".to_owned());
        let waiting = StoredCircuit { route: None, down, ..blue.clone() };
        assert_eq!(CircuitModel::read("", &CircuitModel::show(&waiting)), Ok(waiting));
        // Both ends at one switch, and a tree.
        let mut here = blue.clone();
        here.route = here.route.map(|route| CircuitRoute { paths: vec![vec![]; 2], ..route });
        assert_eq!(CircuitModel::read("", &CircuitModel::show(&here)), Ok(here));
        let mut tree = StoredCircuit { circuit: "t 1:1 2:1 3:1".parse().unwrap(), ..blue };
        tree.route = tree.route.map(|route| CircuitRoute {
            places: [route.places.clone(), route.places[..1].to_vec()].concat(),
            paths: vec![vec![], route.paths[1].clone(), vec![]],
        });
        assert_eq!(CircuitModel::read("", &CircuitModel::show(&tree)), Ok(tree));
    }

    #[test]
    fn a_damaged_circuit_is_refused() {
        let text = CircuitModel::show(&blue());
        for (from, to) in [
            (" end=02:00:00:00:00:07", ""),
            ("generation=0", "generation=2"),
            ("vlan=2000", "vlan=65535"),
            ("vlans=8", "vlans=0"),
            ("push", "pull"),
            ("1:2>2:2", "1:2-2:2"),
            (" path=2:2>1:2", ""),
            ("detour=0,0", "detour=0,1"),
            ("detour=0,0,2001,1:3>3:2,3:1>2:3", "detour=0,0,2001,"),
            ("intent=7340035 ", ""),
        ] {
            assert!(text.contains(from), "{from}");
            let damaged = text.replace(from, to);
            assert!(CircuitModel::read("", &damaged).is_err(), "{damaged}");
        }
        // A newer release has written more.
        let newer = text.replace("intent=", "colour=blue intent=");
        assert_eq!(CircuitModel::read("", &newer), Ok(blue()));
    }

    #[test]
    fn all_flows_follow_from_what_is_stored() {
        let blue = blue();
        let layout = blue.layout(6).unwrap();
        let again = CircuitModel::read("", &CircuitModel::show(&blue)).unwrap();
        assert_eq!(again.layout(6), Some(layout.clone()));
        assert_eq!((layout.path, layout.unprotected), (vec![port("1:2")], vec![port("2:2")]));
        let switches: std::collections::BTreeSet<_> =
            layout.entries.iter().map(|(_, dpid, _)| dpid.0).collect();
        assert_eq!(switches, [1, 2, 3].into());
        assert!(again.has_flows_of(&blue));
        assert!(!StoredCircuit { generation: 1, ..again.clone() }.has_flows_of(&blue));
        let down = Some("port 1:1 is not up".to_owned());
        assert!(StoredCircuit { down, ..again }.has_flows_of(&blue));
    }
}
