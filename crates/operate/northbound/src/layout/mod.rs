//! Where switches are drawn: a position for each in the plane, so that the distance of two switches
//! on the picture is like the number of links between them in the network.
//!
//! Connected parts of the network are laid out one by one, by [`stress`], and put side by side. A
//! layout starts from the one before, and a link or a switch that is lost moves nothing. So an
//! operator finds a switch where it was.
//!
//! # What it is not
//! It knows no pixels: lengths are in links. Hosts are placed by the page, around their switches.

mod stress;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellrock_api::Dpid;
use bellrock_query::TopologyAnswer;
use serde::Serialize;
use utoipa::ToSchema;

use crate::limits::MAX_LAYOUT_SWITCHES;

/// Space between two connected parts, in links.
const GAP: f64 = 1.5;

/// Width of the picture for each unit of its height, about that of a screen.
const ASPECT: f64 = 1.6;

/// A point of the plane, in links.
type Point = [f64; 2];

/// Where to draw the switches.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct LayoutAnswer {
    /// Width of the picture. The unit is the length of a link.
    pub(crate) width: f64,
    /// Height of the picture.
    pub(crate) height: f64,
    /// Number of switches that are left out, because there are too many.
    pub(crate) left_out: usize,
    /// The switches, by datapath id.
    pub(crate) switches: Vec<SwitchPosition>,
}

/// Where to draw a switch.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SwitchPosition {
    /// Its datapath id.
    pub(crate) dpid: String,
    /// Distance from the left edge.
    pub(crate) x: f64,
    /// Distance from the upper edge.
    pub(crate) y: f64,
}

/// The switches and links of a network, without directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Graph {
    switches: BTreeSet<Dpid>,
    links: BTreeSet<(Dpid, Dpid)>,
}

impl Graph {
    /// The graph, and the number of switches that are left out.
    fn of(topology: &TopologyAnswer) -> (Self, usize) {
        let dpids = topology.switches.iter().map(|switch| switch.dpid);
        let switches: BTreeSet<Dpid> = dpids.take(MAX_LAYOUT_SWITCHES).collect();
        let ends = topology.links.iter().map(|link| (link.from_dpid, link.to_dpid));
        let links = ends
            .filter(|(a, b)| a != b && switches.contains(a) && switches.contains(b))
            .map(|(a, b)| (a.min(b), a.max(b)))
            .collect();
        let left_out = topology.switches.len() - switches.len();
        (Graph { switches, links }, left_out)
    }

    /// The connected parts, the largest first.
    fn parts(&self) -> Vec<Part> {
        let dpids: Vec<Dpid> = self.switches.iter().copied().collect();
        let number: HashMap<Dpid, usize> =
            dpids.iter().enumerate().map(|(number, dpid)| (*dpid, number)).collect();
        let mut neighbours = vec![Vec::new(); dpids.len()];
        for (a, b) in &self.links {
            neighbours[number[a]].push(number[b]);
            neighbours[number[b]].push(number[a]);
        }
        // The place of each switch within its part.
        let mut place = vec![usize::MAX; dpids.len()];
        let mut parts = Vec::new();
        for first in 0..dpids.len() {
            if place[first] != usize::MAX {
                continue;
            }
            let mut members = vec![first];
            place[first] = 0;
            let mut next = 0;
            while let Some(&member) = members.get(next) {
                next += 1;
                for &other in &neighbours[member] {
                    if place[other] == usize::MAX {
                        place[other] = members.len();
                        members.push(other);
                    }
                }
            }
            let within = |member: &usize| neighbours[*member].iter().map(|n| place[*n]).collect();
            parts.push(Part {
                dpids: members.iter().map(|member| dpids[*member]).collect(),
                neighbours: members.iter().map(within).collect(),
            });
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.dpids.len()));
        parts
    }
}

/// A connected part of the network.
struct Part {
    dpids: Vec<Dpid>,
    /// The neighbours of each, as places in `dpids`.
    neighbours: Vec<Vec<usize>>,
}

/// The latest layout, from which the next one starts.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    graph: Graph,
    positions: BTreeMap<Dpid, Point>,
}

impl Layouts {
    /// The layout of a topology.
    pub(crate) fn of(&mut self, topology: &TopologyAnswer) -> LayoutAnswer {
        let (graph, left_out) = Graph::of(topology);
        let is_known = graph.switches.is_subset(&self.graph.switches)
            && graph.links.is_subset(&self.graph.links);
        if !is_known {
            // While links are being found, switches lie in rows: no start for their layout.
            if 2 * graph.links.intersection(&self.graph.links).count() < graph.links.len() {
                self.positions.clear();
            }
            self.positions = arrange(&graph, &self.positions);
            self.graph = graph.clone();
        }
        let shown = self.positions.iter().filter(|(dpid, _)| graph.switches.contains(dpid));
        answer(&shown.map(|(dpid, point)| (*dpid, *point)).collect(), left_out)
    }
}

fn answer(positions: &BTreeMap<Dpid, Point>, left_out: usize) -> LayoutAnswer {
    let bounds = Bounds::of(positions.values());
    let rounded = |length: f64| (length * 1000.0).round() / 1000.0;
    let switches = positions.iter().map(|(dpid, [x, y])| SwitchPosition {
        dpid: dpid.to_string(),
        x: rounded(x - bounds.low[0]),
        y: rounded(y - bounds.low[1]),
    });
    LayoutAnswer {
        width: rounded(bounds.size(0)),
        height: rounded(bounds.size(1)),
        left_out,
        switches: switches.collect(),
    }
}

/// Lays out each part, and puts them into rows.
fn arrange(graph: &Graph, earlier: &BTreeMap<Dpid, Point>) -> BTreeMap<Dpid, Point> {
    let mut laid = Vec::new();
    for part in graph.parts() {
        let known: Vec<Option<Point>> =
            part.dpids.iter().map(|dpid| earlier.get(dpid).copied()).collect();
        let points = stress::layout(&part.neighbours, &known);
        laid.push((part.dpids, Bounds::of(points.iter()), points));
    }
    let area: f64 = laid.iter().map(|(_, b, _)| (b.size(0) + GAP) * (b.size(1) + GAP)).sum();
    let widest = laid.iter().map(|(_, bounds, _)| bounds.size(0)).fold(0.0, f64::max);
    let row_width = widest.max((area * ASPECT).sqrt());
    let mut positions = BTreeMap::new();
    let (mut left, mut top, mut row_height) = (0.0, 0.0, 0.0_f64);
    for (dpids, bounds, points) in laid {
        if left > 0.0 && left + bounds.size(0) > row_width {
            (left, top, row_height) = (0.0, top + row_height + GAP, 0.0);
        }
        for (dpid, [x, y]) in dpids.into_iter().zip(points) {
            positions.insert(dpid, [x - bounds.low[0] + left, y - bounds.low[1] + top]);
        }
        left += bounds.size(0) + GAP;
        row_height = row_height.max(bounds.size(1));
    }
    positions
}

/// The rectangle around some points.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    low: Point,
    high: Point,
}

impl Bounds {
    fn of<'a>(points: impl Iterator<Item = &'a Point>) -> Self {
        let empty = Bounds { low: [f64::INFINITY; 2], high: [f64::NEG_INFINITY; 2] };
        let all = points.fold(empty, |bounds, [x, y]| Bounds {
            low: [bounds.low[0].min(*x), bounds.low[1].min(*y)],
            high: [bounds.high[0].max(*x), bounds.high[1].max(*y)],
        });
        if all.low[0].is_finite() { all } else { Bounds { low: [0.0; 2], high: [0.0; 2] } }
    }

    fn size(&self, axis: usize) -> f64 {
        self.high[axis] - self.low[axis]
    }
}
