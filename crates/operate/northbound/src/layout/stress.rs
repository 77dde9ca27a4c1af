//! Layout of a connected graph by stress minimization: the squares of the differences between the
//! distance of two nodes on the plane and in the graph, each divided by the square of the latter,
//! have a small sum.
//!
//! Sources: Zheng, Pawar and Goodman, "Graph Drawing by Stochastic Gradient Descent" (IEEE TVCG
//! 2019), for the steps; Ortmann, Klimenta and Brandes, "A Sparse Stress Model" (JGAA 2017), for
//! large graphs, where each node keeps its distances only to its neighbours and to some pivots,
//! which stand for the nodes around them.

use std::collections::VecDeque;

use super::Point;

/// Maximum number of nodes of which each keeps its distance to each other. Larger graphs have
/// pivots.
const MAX_EXACT_NODES: usize = 1000;

/// Number of pivots.
const PIVOTS: usize = 100;

/// Maximum number of neighbours of its neighbours from which a node of a larger graph keeps its
/// distance. Without these, the leaves of a tree fall together.
const SECOND_NEIGHBOURS: usize = 30;

/// Rounds over all terms.
const ROUNDS: usize = 40;

/// Size of the last steps: so far a pair that is linked moves towards its distance.
const LAST_STEP: f64 = 0.05;

/// Size of the first steps, if the nodes have positions already. Only what is near moves much.
const WARM_STEP: f64 = 0.3;

/// The layout is the same for the same graph.
const SEED: u64 = 0x6c61_796f_7574;

/// That `moves` should be so far from `from`.
struct Term {
    moves: usize,
    from: usize,
    distance: f64,
    weight: f64,
    /// Whether `from` moves as well.
    both: bool,
}

/// A position for each node of a connected graph. `neighbours`: of each node. `known`: positions of
/// an earlier layout.
pub(super) fn layout(neighbours: &[Vec<usize>], known: &[Option<Point>]) -> Vec<Point> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let is_new = known.iter().all(Option::is_none);
    let mut points = first_positions(neighbours, known, &mut random);
    let mut terms = match neighbours.len() {
        0..=MAX_EXACT_NODES => all_pairs(neighbours),
        _ => pivots(neighbours),
    };
    let lightest = terms.iter().map(|term| term.weight).fold(1.0, f64::min);
    let first_step = if is_new { 1.0 / lightest } else { WARM_STEP };
    let decay = (LAST_STEP / first_step).ln() / (ROUNDS - 1) as f64;
    for round in 0..ROUNDS {
        let step = first_step * (decay * round as f64).exp();
        random.shuffle(&mut terms);
        for term in &terms {
            apply(term, step, &mut points);
        }
    }
    if is_new {
        lie_down(&mut points);
    }
    points
}

/// Moves one or two nodes towards their distance.
fn apply(term: &Term, step: f64, points: &mut [Point]) {
    let [ax, ay] = points[term.moves];
    let [bx, by] = points[term.from];
    let (dx, dy) = (ax - bx, ay - by);
    let length = dx.hypot(dy).max(1e-9);
    let share = (term.weight * step).min(1.0) * if term.both { 0.5 } else { 1.0 };
    let by_how_much = share * (length - term.distance) / length;
    points[term.moves] = [ax - by_how_much * dx, ay - by_how_much * dy];
    if term.both {
        points[term.from] = [bx + by_how_much * dx, by + by_how_much * dy];
    }
}

/// Known nodes stay; a new one starts beside a neighbour that has a position, or anywhere.
fn first_positions(
    neighbours: &[Vec<usize>],
    known: &[Option<Point>],
    random: &mut fastrand::Rng,
) -> Vec<Point> {
    let side = (known.len() as f64).sqrt();
    let mut anywhere = |around: Point, size: f64| {
        [around[0] + size * (random.f64() - 0.5), around[1] + size * (random.f64() - 0.5)]
    };
    let place = |node: usize| {
        let beside = || neighbours[node].iter().find_map(|other| known[*other]);
        match (known[node], beside()) {
            (Some(point), _) => point,
            (None, Some(neighbour)) => anywhere(neighbour, 1.0),
            (None, None) => anywhere([0.0; 2], side),
        }
    };
    (0..known.len()).map(place).collect()
}

fn weight(distance: f64) -> f64 {
    1.0 / (distance * distance)
}

fn all_pairs(neighbours: &[Vec<usize>]) -> Vec<Term> {
    let mut terms = Vec::new();
    for from in 0..neighbours.len() {
        let distances = distances(neighbours, from);
        for (moves, distance) in distances.iter().enumerate().skip(from + 1) {
            let distance = f64::from(*distance);
            terms.push(Term { moves, from, distance, weight: weight(distance), both: true });
        }
    }
    terms
}

/// Terms of each node to its neighbours, and to pivots, which are far from each other. The weight
/// of a pivot counts the nodes around it that are nearer to it than half the distance.
fn pivots(neighbours: &[Vec<usize>]) -> Vec<Term> {
    let n = neighbours.len();
    let mut terms = Vec::new();
    for (from, others) in neighbours.iter().enumerate() {
        for &moves in others.iter().filter(|other| **other > from) {
            terms.push(Term { moves, from, distance: 1.0, weight: 1.0, both: true });
        }
        let is_near = |node: &usize| *node == from || others.contains(node);
        let second = others.iter().flat_map(|other| &neighbours[*other]);
        for &moves in second.filter(|node| !is_near(node)).take(SECOND_NEIGHBOURS) {
            terms.push(Term { moves, from, distance: 2.0, weight: weight(2.0), both: true });
        }
    }
    let mut tables: Vec<(usize, Vec<u32>)> = Vec::new();
    // Of each node: its nearest pivot, and the distance to that.
    let mut nearest = vec![(0, u32::MAX); n];
    let mut pivot = 0;
    while tables.len() < PIVOTS.min(n) {
        let distances = distances(neighbours, pivot);
        for (near, distance) in nearest.iter_mut().zip(&distances) {
            if *distance < near.1 {
                *near = (tables.len(), *distance);
            }
        }
        tables.push((pivot, distances));
        pivot = (0..n).max_by_key(|node| nearest[*node].1).unwrap_or_default();
    }
    for (number, (pivot, distances)) in tables.iter().enumerate() {
        let mut region: Vec<u32> =
            nearest.iter().filter(|near| near.0 == number).map(|near| near.1).collect();
        region.sort_unstable();
        for (moves, distance) in distances.iter().enumerate() {
            // Neighbours have a term, and the pivot itself has none.
            if *distance > 1 {
                let count = region.partition_point(|near| 2 * near <= *distance);
                let distance = f64::from(*distance);
                let weight = count as f64 * weight(distance);
                terms.push(Term { moves, from: *pivot, distance, weight, both: false });
            }
        }
    }
    terms
}

/// Number of links from one node to each other.
fn distances(neighbours: &[Vec<usize>], from: usize) -> Vec<u32> {
    let mut distances = vec![u32::MAX; neighbours.len()];
    distances[from] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for &other in &neighbours[node] {
            if distances[other] == u32::MAX {
                distances[other] = distances[node] + 1;
                queue.push_back(other);
            }
        }
    }
    distances
}

/// Turns the picture so that it is as wide as possible, since screens are.
fn lie_down(points: &mut [Point]) {
    let n = points.len().max(1) as f64;
    let sum = points.iter().fold([0.0; 2], |sum, point| [sum[0] + point[0], sum[1] + point[1]]);
    let (mx, my) = (sum[0] / n, sum[1] / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for [x, y] in points.iter() {
        xx += (x - mx) * (x - mx);
        xy += (x - mx) * (y - my);
        yy += (y - my) * (y - my);
    }
    // The angle of the longer principal axis.
    let (sin, cos) = (0.5 * (2.0 * xy).atan2(xx - yy)).sin_cos();
    for point in points.iter_mut() {
        let [x, y] = *point;
        *point = [cos * x + sin * y, cos * y - sin * x];
    }
}
