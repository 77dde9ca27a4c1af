//! The controllers of a lab, each with its control connections.

use std::time::Duration;

use super::control::ControlPlane;
use super::controller::LabController;
use crate::network::EmulatedNetwork;
use crate::topology::SwitchIndex;

/// The controllers. All methods of a lab are about the first one, except those that name another.
pub(super) struct Controls {
    planes: Vec<ControlPlane>,
    /// Buffer for the switches with output.
    dirty: Vec<SwitchIndex>,
}

impl Controls {
    pub(super) fn new(first: ControlPlane) -> Self {
        Controls { planes: vec![first], dirty: Vec::new() }
    }

    /// Number of controllers.
    pub(super) fn count(&self) -> usize {
        self.planes.len()
    }

    /// Adds a controller. Returns its number.
    pub(super) fn add(&mut self, plane: ControlPlane) -> usize {
        self.planes.push(plane);
        self.planes.len() - 1
    }

    pub(super) fn plane(&mut self, number: usize) -> &mut ControlPlane {
        &mut self.planes[number]
    }

    /// A controller, if it runs.
    pub(super) fn controller(&self, number: usize) -> Option<&LabController> {
        self.planes.get(number)?.controller.as_ref()
    }

    /// The first controller, if it runs.
    pub(super) fn first(&self) -> Option<&LabController> {
        self.controller(0)
    }

    /// The same, to change it.
    pub(super) fn first_mut(&mut self) -> Option<&mut LabController> {
        self.planes.first_mut()?.controller.as_mut()
    }

    /// All control planes, for what happens to the connections of a switch.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut ControlPlane> {
        self.planes.iter_mut()
    }

    /// Maximum time that a switch waits before it connects again.
    pub(super) fn longest_wait(&self) -> Duration {
        self.planes.iter().map(ControlPlane::longest_wait).max().unwrap_or_default()
    }

    /// Time of the next event.
    pub(super) fn next(&self) -> Option<Duration> {
        self.planes.iter().filter_map(ControlPlane::next).min()
    }

    /// Runs the first event that is due. Returns whether there was one.
    pub(super) fn step(&mut self, network: &mut EmulatedNetwork) -> bool {
        self.planes.iter_mut().any(|plane| plane.step(network))
    }

    /// Takes the switches' output.
    pub(super) fn collect(&mut self, network: &mut EmulatedNetwork) {
        let mut dirty = std::mem::take(&mut self.dirty);
        network.take_dirty(|switch| dirty.push(switch));
        for switch in dirty.drain(..) {
            for plane in &mut self.planes {
                plane.take_output(switch, network);
            }
        }
        self.dirty = dirty;
    }
}
