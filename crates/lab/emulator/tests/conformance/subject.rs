//! The subject of a conversation.

use std::time::Duration;

use super::frame::Result;
use super::script::Setup;

/// A switch that takes part in conversations.
pub(crate) trait Subject {
    /// Its name, for messages about it.
    fn name(&self) -> &'static str;

    /// Makes a new switch with connections to all its controllers. Only hellos have been exchanged.
    fn begin(&mut self, setup: &Setup) -> Result<()>;

    /// Gives the switch bytes from a controller.
    fn send(&mut self, controller: usize, bytes: &[u8]) -> Result<()>;

    /// Gives the switch a frame at a port.
    fn frame(&mut self, port: u32, frame: &[u8]) -> Result<()>;

    /// Lets time pass.
    fn wait(&mut self, time: Duration) -> Result<()>;

    /// Takes the link of a port down or up.
    fn link(&mut self, port: u32, up: bool) -> Result<()>;

    /// Returns all effects since the last call, when they are complete.
    fn heard(&mut self) -> Result<Heard>;
}

/// The effects of a step.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Whole messages, in order: controller and bytes.
    pub(crate) messages: Vec<(usize, Vec<u8>)>,
    /// Frames by port, each port's in order.
    pub(crate) frames: Vec<(u32, Vec<u8>)>,
    /// Controllers whose connection the switch has closed.
    pub(crate) closed: Vec<usize>,
}
