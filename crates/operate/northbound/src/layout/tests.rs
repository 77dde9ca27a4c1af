//! Layouts of lines, rings, grids and parts.

use serde_json::json;

use super::*;

/// A topology with links in both directions.
fn topology(switches: u64, links: &[(u64, u64)]) -> TopologyAnswer {
    let dpid = |number: u64| Dpid(number + 1);
    let link = |(from, to): (u64, u64)| {
        json!({
            "from_dpid": dpid(from).to_string(), "from_port": "1", "to_dpid": dpid(to).to_string(),
            "to_port": "2", "up_seconds": 1, "rate_kbps": null, "both_ways": true,
        })
    };
    let switch =
        |number| json!({"dpid": dpid(number).to_string(), "ports_up": 1, "edge_ports": []});
    let links: Vec<_> = links.iter().flat_map(|&(a, b)| [link((a, b)), link((b, a))]).collect();
    let switches: Vec<_> = (0..switches).map(switch).collect();
    let answer = json!({"settled": true, "switches": switches, "links": links});
    serde_json::from_value(answer).unwrap()
}

fn ring(n: u64) -> Vec<(u64, u64)> {
    (0..n).map(|a| (a, (a + 1) % n)).collect()
}

fn grid(side: u64) -> Vec<(u64, u64)> {
    let right = (0..side * side).filter(|a| a % side + 1 < side).map(|a| (a, a + 1));
    let down = (0..side * (side - 1)).map(|a| (a, a + side));
    right.chain(down).collect()
}

/// Lengths of these links on the picture.
fn lengths(layout: &LayoutAnswer, links: &[(u64, u64)]) -> Vec<f64> {
    let at = |number: u64| {
        let switch = &layout.switches[usize::try_from(number).unwrap()];
        assert_eq!(switch.dpid, Dpid(number + 1).to_string());
        [switch.x, switch.y]
    };
    let length = |(a, b): &(u64, u64)| (at(*a)[0] - at(*b)[0]).hypot(at(*a)[1] - at(*b)[1]);
    links.iter().map(length).collect()
}

#[test]
fn an_empty_network_and_a_single_switch_have_a_layout() {
    let mut layouts = Layouts::default();
    let empty = layouts.of(&topology(0, &[]));
    assert_eq!((empty.width, empty.height, empty.switches.len()), (0.0, 0.0, 0));
    let one = layouts.of(&topology(1, &[]));
    assert_eq!((one.switches[0].x, one.switches[0].y), (0.0, 0.0));
}

#[test]
fn links_have_about_the_length_one() {
    for (n, links) in [(2, vec![(0, 1)]), (12, ring(12)), (49, grid(7))] {
        let layout = Layouts::default().of(&topology(n, &links));
        for length in lengths(&layout, &links) {
            assert!((0.7..1.3).contains(&length), "{n}: {length}");
        }
        assert!(layout.switches.iter().all(|at| (0.0..=layout.width).contains(&at.x)));
        assert!(layout.switches.iter().all(|at| (0.0..=layout.height).contains(&at.y)));
    }
}

#[test]
fn a_line_lies_down() {
    let links: Vec<_> = (0..9).map(|a| (a, a + 1)).collect();
    let layout = Layouts::default().of(&topology(10, &links));
    assert!(layout.width > 8.0 && layout.height < 1.0, "{} x {}", layout.width, layout.height);
}

#[test]
fn a_large_network_is_unfolded_with_pivots() {
    let links = grid(40);
    let layout = Layouts::default().of(&topology(1600, &links));
    let lengths = lengths(&layout, &links);
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    assert!((0.8..1.4).contains(&mean), "{mean}");
    // Unfolded: the farthest corners are almost as far from each other as they can be.
    assert!(layout.width > 40.0, "{} x {}", layout.width, layout.height);
}

#[test]
fn parts_do_not_overlap() {
    let links = [ring(6), ring(5).iter().map(|(a, b)| (a + 6, b + 6)).collect()].concat();
    let layout = Layouts::default().of(&topology(15, &links));
    let part = |of: std::ops::Range<usize>| {
        let points: Vec<Point> = layout.switches[of].iter().map(|at| [at.x, at.y]).collect();
        Bounds::of(points.iter())
    };
    let parts = [part(0..6), part(6..11), part(11..12), part(12..13), part(13..14), part(14..15)];
    for (number, one) in parts.iter().enumerate() {
        for other in &parts[number + 1..] {
            let apart = |axis| one.high[axis] < other.low[axis] || other.high[axis] < one.low[axis];
            assert!(apart(0) || apart(1), "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_lost_link_moves_nothing_and_a_new_switch_little() {
    let mut layouts = Layouts::default();
    let before = layouts.of(&topology(25, &grid(5)));
    let mut links = grid(5);
    links.pop();
    assert_eq!(layouts.of(&topology(25, &links)), before);
    links.push((12, 25));
    let after = layouts.of(&topology(26, &links));
    // As the picture's corner may have moved, relative to one of the switches.
    let shift = [0, 1].map(|axis| {
        let at = |layout: &LayoutAnswer| {
            let switch = &layout.switches[0];
            [switch.x, switch.y][axis]
        };
        at(&after) - at(&before)
    });
    for (old, new) in before.switches.iter().zip(&after.switches) {
        let moved = (new.x - shift[0] - old.x).hypot(new.y - shift[1] - old.y);
        assert!(moved < 1.0, "{} moved by {moved}", old.dpid);
    }
}

#[test]
fn a_network_whose_links_were_found_later_is_laid_out_as_if_they_were_known() {
    let mut layouts = Layouts::default();
    layouts.of(&topology(49, &[]));
    layouts.of(&topology(49, &grid(7)[..20]));
    let late = layouts.of(&topology(49, &grid(7)));
    assert_eq!(late, Layouts::default().of(&topology(49, &grid(7))));
}

#[test]
fn a_switch_that_comes_back_is_where_it_was() {
    let mut layouts = Layouts::default();
    let before = layouts.of(&topology(12, &ring(12)));
    let without: Vec<_> = ring(12).into_iter().filter(|(a, b)| a.max(b) < &11).collect();
    assert_eq!(layouts.of(&topology(11, &without)).switches.len(), 11);
    assert_eq!(layouts.of(&topology(12, &ring(12))), before);
}

#[test]
fn switches_above_the_bound_are_counted() {
    let n = MAX_LAYOUT_SWITCHES + 3;
    let layout = Layouts::default().of(&topology(n as u64, &[]));
    assert_eq!((layout.switches.len(), layout.left_out), (MAX_LAYOUT_SWITCHES, 3));
}
